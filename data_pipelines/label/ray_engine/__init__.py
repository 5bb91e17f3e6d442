"""Label jobs whose scorers work in Ray actors; reading, numbering and writing stay in the calling process."""
