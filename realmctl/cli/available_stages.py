"""The stages that the command line offers. Tests put others here."""

from __future__ import annotations

from realmctl.stage import Stage
from realmctl.stage.discovery import own_stages


def available_stages() -> dict[str, type[Stage]]:
    """{command: stage} in the order of the data flow. Raises ConfigError for a foreign `stages`, before any of it runs."""
    return own_stages()
