"""`realmctl run`: a YAML file of stages with named outputs, made in order of their inputs.

    workspace: w                     # where the outputs' series lie
    vars: {seed: 0}                  # ${seed} below; `--var seed=1` from the command line; $$ is a dollar
    defaults:                        # what every output of a stage is given unless it says otherwise
      tag: {tagger: rules}
    stages:
      blocks:    {stage: chunk, corpus: [dump.xml.bz2], tokenizer: "train:8000"}
      spans:     {stage: tag}        # an input not named is the output of that name in this file
      other:     {stage: chunk, corpus: [news.jsonl], tokenizer: "@blocks/tokenizer"}  # inside an output
      retriever: {stage: ict-init, preset: ict, steps: 60}  # a preset's settings, but for those given here

Paths are those of the folder that the command is run in. The file is checked whole before anything is made.
"""

from __future__ import annotations

import difflib
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from realmctl.errors import ConfigError, InputError
from realmctl.pipeline.pipeline import Pipeline, PipelineStep
from realmctl.stage import Role, Stage, hints, presets, roles
from realmctl.stage.sources import is_literal
from realmctl.stage.values import typed

TOP_LEVEL = ("workspace", "vars", "defaults", "stages")
OUTPUT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_BYTES = 2**20

Stages = Mapping[str, type[Stage]]


def pair(text: str) -> tuple[str, str]:
    """`name=value` as a pair. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--var {text}: write name=value.")
    return name, value


def read(file: Path, stages: Stages, variables: Mapping[str, str], workspace: Path | None) -> Pipeline:
    """Parse and check a pipeline file. Raises InputError or ConfigError naming the file and the key."""
    document = _filled(file, _document(file), variables)
    where = workspace or Path(str(document.get("workspace", "artifacts")))
    entries = document.get("stages")
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise ConfigError(f"{file}: `stages` must name outputs, each with its `stage` and settings.")
    if odd := [name for name in entries if not OUTPUT_NAME.fullmatch(str(name))]:
        raise ConfigError(f"{file}: {odd[0]!r} cannot name an output; use letters, digits, dot, dash, underscore.")
    defaults = _defaults(file, document.get("defaults") or {}, stages)
    whole = {str(name): defaults.get(str(entry.get("stage")), {}) | _fields(entry) for name, entry in entries.items()}
    steps = {name: _step(file, name, entry, stages, entries) for name, entry in whole.items()}
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
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if double := [str(key) for key in keys if keys.count(key) > 1]:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: {double[0]!r} is given twice")
        return super().construct_mapping(node, deep)


def _document(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise yaml.YAMLError("it is larger than 1 MiB")
        document = yaml.load(text.decode("utf-8"), _Loader)  # a SafeLoader
        if not isinstance(document, dict):
            raise yaml.YAMLError("it holds no mapping")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}. Name a pipeline file.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{file} is no pipeline: {' '.join(str(error).split())}") from None
    for key in document:
        _known(file, key, TOP_LEVEL)
    return document


def _filled(file: Path, document: dict[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    own = document.get("vars") or {}
    if not isinstance(own, dict):
        raise ConfigError(f"{file}: `vars` must be names with values.")
    for name in variables:
        _known(file, name, own)
    known = {name: variables.get(name, value) for name, value in own.items()}

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return string.Template(value).substitute(known)
        if isinstance(value, list):
            return [filled(item) for item in value]
        return {key: filled(item) for key, item in value.items()} if isinstance(value, dict) else value

    try:
        return {key: filled(value) for key, value in document.items() if key != "vars"}
    except KeyError as error:
        raise ConfigError(f"{file}: no variable {error}; give it under `vars`.") from None
    except ValueError as error:
        raise ConfigError(f"{file}: {error}; write $$ for a dollar.") from None


def _known(file: Path, key: Any, names: Iterable[Any]) -> None:
    known = [str(name) for name in names]
    if key not in known:
        near = difflib.get_close_matches(str(key), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known) or 'none'}."
        raise ConfigError(f"{file}: unknown key {key!r}; {hint}")


def _defaults(file: Path, given: Any, stages: Stages) -> dict[str, dict[str, Any]]:
    if not isinstance(given, dict) or not all(isinstance(values, dict) for values in given.values()):
        raise ConfigError(f"{file}: `defaults` must name stages, each with its settings.")
    for stage, values in given.items():
        _known(file, stage, stages)
        for field in _fields(values):
            _known(file, field, (*roles(stages[stage]), "preset"))
    return {stage: _fields(values) for stage, values in given.items()}


def _fields(entry: Mapping[Any, Any]) -> dict[str, Any]:
    """The entry with the names of fields: kind-of becomes kind_of."""
    return {str(key).replace("-", "_"): value for key, value in entry.items()}


def _step(file: Path, name: str, entry: Mapping[str, Any], stages: Stages, outputs: Iterable[str]) -> PipelineStep:
    where = f"{file}: {name}"
    if "stage" not in entry:
        raise ConfigError(f"{where} needs `stage`, one of {', '.join(stages)}.")
    _known(file, entry["stage"], stages)
    stage = stages[entry["stage"]]
    given = {key: value for key, value in entry.items() if key not in ("stage", "preset")}
    given = {**_preset(where, stage, entry), **given}
    for key in given:
        _known(file, key, roles(stage))
    inputs = _inputs(where, name, stage, given, set(outputs))
    inside = {key: value[1:] for key, value in given.items() if _lies_inside(value, roles(stage)[key])}
    for place in inside.values():
        _known(file, place.partition("/")[0], outputs)
    rest = {key: value for key, value in given.items() if key not in inputs and key not in inside}
    values = {key: _value(stage, key, value, f"{where}.{key}") for key, value in rest.items()}
    if missing := [key for key in _required(stage) if key not in values and key not in inside]:
        raise ConfigError(f"{where} needs {missing[0].replace('_', '-')}: {roles(stage)[missing[0]].help}")
    return PipelineStep(name, stage, values, inputs, inside)


def _preset(where: str, stage: type[Stage], entry: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return presets.settings_of(str(entry["preset"]), stage.command()) if "preset" in entry else {}
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _inputs(where: str, name: str, stage: type[Stage], given: Mapping[str, Any], outputs: set[str]) -> dict[str, str]:
    """{field: output}: those that are named, then those that have the name of their field."""
    reads = {field: role for field, role in roles(stage).items() if role.name == "reads"}
    inputs = {}
    for field in reads.keys() & given.keys():
        if given[field] in (outputs if isinstance(given[field], str) else ()):
            inputs[field] = given[field]
        elif not isinstance(given[field], str) or not Path(given[field]).exists():
            raise ConfigError(f"{where}.{field}: {given[field]!r} is no output of this file and no folder here.")
    for field, role in reads.items():
        output = field.replace("_", "-")
        covered = role.unless is not None and role.unless(given)
        if field not in given and not role.named and not covered and output in outputs - {name}:
            inputs[field] = output
    return inputs


def _lies_inside(value: Any, role: Role) -> bool:
    return role.name == "source" and isinstance(value, str) and value.startswith("@")


def _value(stage: type[Stage], key: str, value: Any, where: str) -> Any:
    role = roles(stage)[key]
    if role.name == "reads":
        return Path(value)
    value = typed(hints(stage)[key], value, where)
    role.check_choice(value, where)
    if role.name == "source" and not role.hub:
        for path in value if isinstance(value, tuple) else (value,) if value else ():
            if not is_literal(path, role.literals) and not Path(path).expanduser().exists():
                raise InputError(f"{where}: {path} does not exist (looked from {Path.cwd()}).")
    return value


def _required(stage: type[Stage]) -> list[str]:
    without = [item.name for item in fields(stage) if item.default is MISSING]  # type: ignore[arg-type]
    return [name for name in without if roles(stage)[name].name != "reads"]
