"""Which stages a package holds, and the order in which data flows through them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from graphlib import TopologicalSorter
from types import ModuleType

from realmctl.errors import ConfigError
from realmctl.stage.fields import roles
from realmctl.stage.stage import Stage


def discover(package: ModuleType) -> dict[str, type[Stage]]:
    """{command: stage} of a package of stage files, each holding exactly one. Raises ConfigError if not."""
    found: dict[str, type[Stage]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
        stages = [value for value in own if isinstance(value, type) and issubclass(value, Stage)]
        if len(stages) != 1:
            raise ConfigError(f"{module.__file__} holds {len(stages)} stages; a stage file holds exactly one.")
        found[stages[0].command()] = stages[0]
    return found


def in_order(found: Mapping[str, type[Stage]]) -> dict[str, type[Stage]]:
    """Stages as the data flows, so that `--help` reads as the chain does."""
    makers: dict[str, list[str]] = {}
    for name, stage in found.items():
        makers.setdefault(stage.makes, []).append(name)
    graph = {name: _makers_of_inputs(stage, makers) - {name} for name, stage in sorted(found.items())}
    return {name: found[name] for name in TopologicalSorter(graph).static_order()}


def _makers_of_inputs(stage: type[Stage], makers: Mapping[str, list[str]]) -> set[str]:
    kinds = [role.kinds[0] for role in roles(stage).values() if role.name == "reads"]
    return {maker for kind in kinds if kind != stage.makes for maker in makers.get(kind, [])}
