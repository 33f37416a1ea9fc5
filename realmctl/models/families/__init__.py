"""Families of encoders: what the stages need of one, and one file for each family."""
