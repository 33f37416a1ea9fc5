"""Checkpoints of REALM into artifacts."""
