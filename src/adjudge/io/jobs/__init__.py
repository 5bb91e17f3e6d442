"""Jobs over rows: what makes new rows of old ones, and survives any interruption while it does."""
