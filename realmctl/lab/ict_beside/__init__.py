"""REALM with the inverse cloze task's loss beside its own."""

OFFERS: dict[str, dict[str, str]] = {}
