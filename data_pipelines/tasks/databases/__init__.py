"""SQLite databases made from schemas and sample values, chosen because they tell queries apart."""
