"""What every training shares: its configuration file, and opening the model that it starts from."""
