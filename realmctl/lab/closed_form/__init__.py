"""Starts without steps: a ridge head, principal components."""

OFFERS: dict[str, dict[str, str]] = {}
