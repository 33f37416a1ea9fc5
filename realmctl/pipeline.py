"""`realmctl run`: a YAML file of stages with named outputs, made in order of their inputs.

    workspace: w                     # where the outputs' series lie
    vars: {seed: 0}                  # ${seed} below; `--var seed=1` from the command line
    stages:
      blocks:   {stage: chunk, corpus: [dump.xml.bz2], tokenizer: "train:8000"}
      spans:    {stage: tag}         # an input not named is the output of that name in this file
      other:    {stage: chunk, corpus: [news.jsonl], tokenizer: "@blocks/tokenizer"}  # a folder inside an output
      retriever: {stage: ict-init, steps: 60}
      ...
"""

from __future__ import annotations

import difflib
import string
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import NoneType
from typing import Any

import yaml

from realmctl.artifact import Artifact
from realmctl.catalogue import with_defaults
from realmctl.errors import ConfigError, InputError
from realmctl.log import say
from realmctl.stage import Stage, roles

TOP_LEVEL = ("workspace", "vars", "stages")


def in_order(found: Mapping[str, type[Stage]]) -> dict[str, type[Stage]]:
    """Stages as the data flows, so that `--help` reads as the chain does."""
    makers: dict[str, list[str]] = {}
    for name, stage in found.items():
        makers.setdefault(stage.makes, []).append(name)
    graph = {name: _needs(stage, makers) - {name} for name, stage in sorted(found.items())}
    return {name: found[name] for name in TopologicalSorter(graph).static_order()}


def _needs(stage: type[Stage], makers: Mapping[str, list[str]]) -> set[str]:
    kinds = [role.kinds[0] for role in roles(stage).values() if role.name == "reads"]
    return {maker for kind in kinds if kind != stage.makes for maker in makers.get(kind, [])}


def pair(text: str) -> tuple[str, str]:
    """`name=value` as a pair. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--var {text}: write name=value.")
    return name, value


@dataclass(frozen=True)
class Step:
    """One output of a pipeline: its stage, the values its file gave, and the outputs it needs."""

    name: str
    stage: type[Stage]
    values: Mapping[str, Any]
    inputs: Mapping[str, str]
    inside: Mapping[str, str]

    @property
    def needs(self) -> set[str]:
        """The outputs that must be made first."""
        return {*self.inputs.values(), *(place.partition("/")[0] for place in self.inside.values())}

    def build(self, made: Mapping[str, Artifact], workspace: Path) -> Stage:
        """The stage with its inputs in place."""
        values = dict(self.values) | {field: made[output] for field, output in self.inputs.items()}
        for field, place in self.inside.items():
            output, _, path = place.partition("/")
            values[field] = _typed(typing.get_type_hints(self.stage)[field], str(made[output].path / path), field)
        return self.stage(**with_defaults(self.stage, values, workspace))


@dataclass(frozen=True)
class Pipeline:
    """Steps in the order in which they can be made."""

    workspace: Path
    steps: tuple[Step, ...]

    def until(self, name: str | None) -> tuple[Step, ...]:
        """All steps, or `name` and what it needs. Raises ConfigError for an unknown output."""
        if name is None:
            return self.steps
        by_name = {step.name: step for step in self.steps}
        if name not in by_name:
            raise ConfigError(f"--until {name}: this file makes {', '.join(by_name)}.")
        wanted, todo = set[str](), [name]
        while todo:
            step = by_name[todo.pop()]
            wanted.add(step.name)
            todo += step.needs
        return tuple(step for step in self.steps if step.name in wanted)

    def make(self, steps: Iterable[Step]) -> dict[str, Artifact]:
        """Make every step that is not made already. Returns the artifact of each output."""
        made: dict[str, Artifact] = {}
        for step in steps:
            say(f"--- {step.name} ({step.stage.command()})")
            made[step.name] = step.build(made, self.workspace).make(self.workspace / step.name)
        return made

    def outline(self, steps: Iterable[Step]) -> list[dict[str, Any]]:
        """The plan for `--dry-run`."""
        return [{"output": s.name, "stage": s.stage.command(), "inputs": dict(s.inputs), "settings": _shown(s.values)} for s in steps]


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [str(v) for v in value] if isinstance(value, tuple) else value if isinstance(value, int | float | bool) else str(value) for name, value in values.items()}


def outline_text(value: Mapping[str, Any]) -> str:
    """A pipeline's dry run for people."""
    lines = []
    for step in value["steps"]:
        reads = ", ".join(f"{field}={output}" for field, output in step["inputs"].items())
        settings = " ".join(f"{name}={setting}" for name, setting in step["settings"].items())
        lines.append(f"{step['output']:<20} {step['stage']:<12} {reads}  {settings}".rstrip())
    return "\n".join(lines)


def read(file: Path, stages: Mapping[str, type[Stage]], variables: Mapping[str, str], workspace: Path | None) -> Pipeline:
    """Parse and check a pipeline file. Raises InputError or ConfigError naming the file and the key."""
    document = _document(file, variables)
    where = workspace or Path(str(document.get("workspace", "artifacts")))
    entries = document.get("stages")
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise ConfigError(f"{file}: `stages` must name outputs, each with its `stage` and settings.")
    steps = {name: _step(file, name, dict(entry), stages, set(entries)) for name, entry in entries.items()}
    try:
        order = list(TopologicalSorter({name: step.needs for name, step in steps.items()}).static_order())
    except CycleError as error:
        raise ConfigError(f"{file}: these outputs need each other: {' -> '.join(error.args[1])}.") from None
    return Pipeline(where, tuple(steps[name] for name in order))


class _Loader(yaml.SafeLoader):
    """Safe YAML without duplicate keys and without aliases (which can be made to explode)."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not taken here; use vars")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]  # type: ignore[no-untyped-call]
        if double := [str(key) for key in keys if keys.count(key) > 1]:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: {double[0]!r} is given twice")
        return super().construct_mapping(node, deep)


def _document(file: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        document = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
        if not isinstance(document, dict):
            raise yaml.YAMLError("it holds no mapping")
        known = {**(document.get("vars") or {}), **variables}
        return _filled({key: value for key, value in document.items() if _known(file, key, TOP_LEVEL)}, known)  # type: ignore[no-any-return]
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file} is no pipeline: {' '.join(str(error).split())}") from None
    except KeyError as error:
        raise ConfigError(f"{file}: no variable {error}; give it under `vars` or as --var.") from None


def _filled(value: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return string.Template(value).substitute(variables)
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, variables) for key, item in value.items()}
    return value


def _known(file: Path, key: Any, names: Iterable[str]) -> bool:
    names = list(names)
    if key not in names:
        near = difflib.get_close_matches(str(key), names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}."
        raise ConfigError(f"{file}: unknown key {key!r}; {hint}")
    return True


def _step(file: Path, name: str, entry: dict[str, Any], stages: Mapping[str, type[Stage]], outputs: set[str]) -> Step:
    _known(file, "stage" if "stage" in entry else name, ["stage"])
    _known(file, entry["stage"], stages)
    stage = stages[entry.pop("stage")]
    fields = roles(stage)
    given = {str(key).replace("-", "_"): value for key, value in entry.items()}
    for key in given:
        _known(file, key, fields)
    hints = typing.get_type_hints(stage)
    inputs = {field: given.pop(field) for field, role in fields.items() if role.name == "reads" and given.get(field) in outputs}
    unnamed = {field: field.replace("_", "-") for field, role in fields.items() if role.name == "reads" and not role.named and field not in given}
    for field, output in unnamed.items():
        covered = fields[field].unless and all(other in given or other in inputs for other in fields[field].unless)
        if field not in inputs and output in outputs and output != name and not covered:
            inputs[field] = output
    where = f"{file}: {name}"
    inside = {field: str(given.pop(field))[1:] for field, role in fields.items() if role.name == "source" and str(given.get(field)).startswith("@")}
    for place in inside.values():
        _known(file, place.partition("/")[0], outputs)
    return Step(name, stage, {key: _typed(hints[key], value, f"{where}.{key}") for key, value in given.items()}, inputs, inside)


def _typed(hint: Any, value: Any, where: str) -> Any:
    """A YAML value as its field's type (YAML 1.1 reads 3e-5 as text). Raises ConfigError."""
    options = [h for h in typing.get_args(hint) if h is not NoneType] if NoneType in typing.get_args(hint) else [hint]
    hint = options[0]
    if typing.get_origin(hint) is tuple:
        items = value if isinstance(value, list) else [value]
        return tuple(_typed(typing.get_args(hint)[0], item, where) for item in items)
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            raise ConfigError(f"{where}: {value!r} is none of {', '.join(map(str, typing.get_args(hint)))}.")
        return value
    if hint is bool and not isinstance(value, bool):
        raise ConfigError(f"{where}: {value!r} is neither true nor false.")
    try:
        return value if hint is Artifact else hint(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{where}: {value!r} is not of type {hint.__name__}.") from None
