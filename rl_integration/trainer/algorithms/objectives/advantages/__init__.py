"""Advantage rules: what each sample's reward is worth beside the others'; one family in each file."""
