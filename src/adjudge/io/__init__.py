"""Rows in: files and datasets as one numbered stream that can be entered again anywhere."""
