"""Bases of the training stages: what they have in common beyond their settings."""
