"""Find the stages of a package, and the order in which data flows through them."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

from realmctl.errors import ConfigError
from realmctl.pipeline.fields import roles
from realmctl.pipeline.stage import Stage
from realmctl.registry import class_at, joined, offered

GROUP = "realmctl.stages"


def own_names() -> dict[str, str]:
    """{command: "module:Class"} of the package `stages` that lies beside `realmctl`, and of the rooms. None of them is imported.

    `stages` is a common name, and Python prefers a package of that name in the working directory.

    Raises:
        ConfigError: Python would import another package `stages`. None of its code has run.
    """
    ours = Path(__file__).resolve().parents[2] / "stages"
    found = importlib.util.find_spec("stages")
    theirs = Path(next(iter(found.submodule_search_locations or ()), "")) if found else None
    if theirs is None or theirs.resolve() != ours:
        raise ConfigError(
            f"the package `stages` is found at {theirs}, not at {ours}. Run realmctl from another folder, "
            "or with `python -P -m realmctl`."
        )
    return joined(GROUP, classes_by_name("stages", ours), offered(GROUP))


def classes_by_name(package: str, folder: Path) -> dict[str, str]:
    """{command: "module:Class"} of a package whose file `index_docs.py` has the class `IndexDocs`."""
    files = [info.name for info in pkgutil.iter_modules([str(folder)])]
    return {name.replace("_", "-"): f"{package}.{name}:{name.title().replace('_', '')}" for name in files}


def own_stages() -> dict[str, type[Stage]]:
    """{command: stage} of `own_names`, in the order of the data flow."""
    return in_order({name: stage_at(name, where) for name, where in own_names().items()})


def stage_at(name: str, where: str) -> type[Stage]:
    """Import a stage of `own_names`. Raises ConfigError where it has another name than its room says."""
    stage = class_at(where, Stage)
    if stage.command() != name:
        raise ConfigError(
            f"{where}: OFFERS names the stage {name!r}, and its file {stage.command()!r}. Give both one name."
        )
    return stage


def discover(package: ModuleType) -> dict[str, type[Stage]]:
    """Return {command: stage} of a package in which every file holds exactly one stage.

    Raises:
        ConfigError: A file holds no stage, or several.
    """
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
    """Return the stages in the order of the data flow: each stage comes after those that make its inputs.

    An input that is used only where it is named does not count: an encoder may be made of a retriever, and a retriever of an encoder.
    """
    makers: dict[str, list[str]] = {}
    for name, stage in found.items():
        makers.setdefault(stage.makes, []).append(name)
    graph = {name: _makers_of_inputs(stage, makers) - {name} for name, stage in sorted(found.items())}
    return {name: found[name] for name in TopologicalSorter(graph).static_order()}


def _makers_of_inputs(stage: type[Stage], makers: Mapping[str, list[str]]) -> set[str]:
    kinds = [role.kinds[0] for role in roles(stage).values() if role.name == "reads" and not role.explicit_only]
    return {maker for kind in kinds if kind != stage.makes for maker in makers.get(kind, [])}
