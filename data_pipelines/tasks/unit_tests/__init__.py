"""Unit tests whose expected values reference solutions agree on."""
