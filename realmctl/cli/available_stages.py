"""The stages that the command line offers. Only this file imports `stages`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from realmctl.errors import ConfigError
from realmctl.stage import Stage
from realmctl.stage.discovery import discover, in_order


def available_stages() -> dict[str, type[Stage]]:
    """The stages beside this package. Raises ConfigError for a foreign `stages`, before any of it runs."""
    ours = Path(__file__).resolve().parents[2] / "stages"
    found = importlib.util.find_spec("stages")
    theirs = Path(next(iter(found.submodule_search_locations or ()), "")) if found else None
    if theirs is None or theirs.resolve() != ours:
        raise ConfigError(
            f"the package `stages` is found at {theirs}, not at {ours}. Run realmctl from another folder, "
            "or with `python -P -m realmctl`."
        )
    import stages

    return in_order(discover(stages))
