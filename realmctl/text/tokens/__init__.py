"""Wordpieces and sentences."""
