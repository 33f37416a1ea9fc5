"""The file of `realmctl run`: a YAML file of stages with named outputs.

    workspace: w                     # folder of the outputs' series
    vars: {seed: 0}                  # used as ${seed} below; `--var seed=1` replaces it; $$ is a dollar sign
    defaults:                        # settings of every output of a stage, unless the output has its own
      tag: {tagger: rules}
    stages:
      blocks:    {stage: chunk, corpus: [dump.xml.bz2], tokenizer: "train:8000"}
      spans:     {stage: tag}        # its input `blocks` is not given, so it is the output `blocks` of this file
      other:     {stage: chunk, corpus: [news.jsonl], tokenizer: "@blocks/tokenizer"}  # a path inside an output
      retriever: {stage: ict-init, preset: ict, steps: 60}  # the settings of a preset, except `steps`
      index:     {stage: build-index, starts-after: [other]}  # with --jobs: not before `other` is made, which it does not read

Paths are relative to the folder in which the command runs. The whole file is checked before any stage starts.

Numbers and dates are read as text, and the type of each setting decides what they mean. So `010` is ten and `1:30` is not a
number, where YAML 1.1 would read 8 and 90.
"""

from __future__ import annotations

import difflib
import json
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from realmctl.errors import ConfigError, InputError, as_realmctl_error
from realmctl.pipeline import Role, Stage, hints, presets, roles
from realmctl.pipeline.fields import heeded
from realmctl.pipeline.pipeline import Pipeline, PipelineStep
from realmctl.pipeline.plain_yaml import PlainLoader
from realmctl.pipeline.removed import refuse
from realmctl.pipeline.sources import address_of, is_literal
from realmctl.pipeline.values import typed

TOP_LEVEL = ("workspace", "vars", "defaults", "stages")
OF_THE_FILE = ("stage", "preset", "starts_after")
"""Keys of an output that are not settings of its stage."""
OUTPUT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_BYTES = 2**20

Stages = Mapping[str, type[Stage]]


def pair(text: str, flag: str = "--var") -> tuple[str, str]:
    """Split `name=value` of an option. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{flag} {text}: there is no `=`. Write name=value.")
    return name, value


def read(
    file: Path,
    stages: Stages,
    variables: Mapping[str, str],
    workspace: Path | None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Pipeline:
    """Parse and check a pipeline file.

    Args:
        file: The file.
        stages: {command: stage} of the stages that it may name.
        variables: Values that replace those of the file's `vars`.
        workspace: Workspace to use instead of the file's.
        options: {variable: the option of the command that gave it}, which messages name instead of the file.

    Raises:
        InputError: The file cannot be read, or it is not YAML of this form.
        ConfigError: A key or a value is wrong. The message names the output and the key.
    """
    document = _filled(file, _document(file), variables, options)
    where = workspace or _workspace(file, document)
    entries = document.get("stages")
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise ConfigError(f"{file}: `stages` must name outputs, each with its `stage` and settings.")
    if odd := [name for name in entries if not OUTPUT_NAME.fullmatch(str(name))]:
        raise ConfigError(
            f"{file}: {odd[0]!r} cannot be the name of an output. Use letters, digits, dot, dash and underscore."
        )
    defaults = _defaults(file, document.get("defaults") or {}, stages)
    whole = {name: _over(defaults.get(str(entry.get("stage")), {}), _fields(entry)) for name, entry in entries.items()}
    steps = {str(name): _step(file, name, entry, stages, entries) for name, entry in whole.items()}
    try:
        order = list(
            TopologicalSorter({name: step.needs | step.starts_after for name, step in steps.items()}).static_order()
        )
    except CycleError as error:
        raise ConfigError(f"{file}: these outputs need each other: {' -> '.join(error.args[1])}.") from None
    return Pipeline(where, tuple(steps[name] for name in order), frozenset(options.values()))


def _workspace(file: Path, document: Mapping[str, object]) -> Path:
    named = document.get("workspace", "artifacts")
    if not isinstance(named, str) or not named.strip() or "\0" in named:
        raise ConfigError(
            f"{file}: `workspace` is {json.dumps(named)[:80]}, and a path is needed. Write it as text, such as `workspace: artifacts`."
        )
    try:
        return Path(named).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{file}: `workspace` is {named}: {error}. Write the whole path.") from None


class _Key(str):
    """A key of the file, or the name of a field that it stands for, with its line and as the user wrote it.

    option: The option of the command that gave the value; empty if the file gives it.
    """

    line: int
    written: str
    option: str = ""

    @classmethod
    def of(cls, text: str, line: int, written: str, option: str = "") -> _Key:
        made = cls(text)
        made.line, made.written, made.option = line, written, option
        return made


class _Loader(PlainLoader, types=("bool", "null")):
    """YAML without duplicate keys, whose keys know their lines."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if double := [key for key, count in Counter(map(repr, keys)).items() if count > 1]:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: {double[0]} is given twice")
        values = super().construct_mapping(node, deep)
        lines = {key: each.start_mark.line + 1 for key, (each, _) in zip(keys, node.value, strict=True)}
        return {_Key.of(key, lines[key], key) if isinstance(key, str) else key: value for key, value in values.items()}


def _document(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise yaml.YAMLError("it is larger than 1 MiB")
        document = yaml.load(text.decode("utf-8"), _Loader)  # a safe one
        if not isinstance(document, dict):
            raise yaml.YAMLError("it is not a mapping")
    except OSError as error:
        raise as_realmctl_error(error, file) or InputError(
            f"{file} cannot be read: {error.strerror}. Name a pipeline file."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{file} is not a pipeline: {' '.join(str(error).split())}. Correct the file.") from None
    for key in document:
        _known(file, key, TOP_LEVEL)
    return document


def _filled(
    file: Path, document: dict[str, Any], variables: Mapping[str, str], options: Mapping[str, str]
) -> dict[str, Any]:
    own = document.get("vars") or {}
    if not isinstance(own, dict):
        raise ConfigError(f"{file}: `vars` must be names with values.")
    for name in variables:
        _known(file, name, own)
    known = {name: variables.get(name, value) for name, value in own.items()}
    if odd := [name for name, value in known.items() if isinstance(value, list | dict)]:
        raise ConfigError(
            f"{file}: the variable {odd[0]} is not a text. Variables are texts, numbers, true, false or null."
        )

    def filled(value: object) -> Any:
        if isinstance(value, str):
            if known.get(_variable(value), "") is None:
                return None  # the default of the setting
            return string.Template(value).substitute(known)
        if isinstance(value, list):
            return [filled(item) for item in value]
        if not isinstance(value, dict):
            return value
        for key, item in value.items():
            if isinstance(key, _Key):
                key.option = options.get(_variable(item[0] if isinstance(item, list) and item else item), "")
        return {key: filled(item) for key, item in value.items()}

    try:
        return {key: filled(value) for key, value in document.items() if key != "vars"}
    except KeyError as error:
        raise ConfigError(f"{file}: there is no variable {error}. Define it under `vars`.") from None
    except ValueError as error:
        raise ConfigError(f"{file}: {error}. Write $$ for a dollar sign.") from None


def _variable(value: object) -> str:
    """The variable of a value that is nothing but `${variable}`; else empty."""
    alone = string.Template.pattern.fullmatch(value) if isinstance(value, str) else None
    return (alone["named"] or alone["braced"] or "") if alone else ""


def _known(file: Path, key: object, names: Iterable[object]) -> None:
    known = [str(name) for name in names]
    if key not in known:
        written = key.written if isinstance(key, _Key) else str(key)
        shown = [name.replace("_", "-") for name in known] if key != written or "-" in written else known
        near = difflib.get_close_matches(written, shown, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(shown) or 'none'}."
        raise ConfigError(f"{_place(file, key)}: unknown key {written!r}; {hint}")


def _place(file: Path, key: object) -> str:
    """Return the file, with the line of a key that stands in it."""
    return f"{file}:{key.line}" if isinstance(key, _Key) else str(file)


def _place_of_value(file: Path, output: str, key: object) -> str:
    """Return where the user gave a value: an option of the command, or a key of an output."""
    if isinstance(key, _Key):
        return key.option or f"{_place(file, key)}: {output}.{key.written}"
    return f"{file}: {output}.{key}"


def _over(defaults: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the own values and the others of the defaults. Each key is that of its value, with its line."""
    return {**{key: value for key, value in defaults.items() if key not in own}, **own}


def _defaults(file: Path, given: object, stages: Stages) -> dict[str, dict[str, Any]]:
    if not isinstance(given, dict) or not all(isinstance(values, dict) for values in given.values()):
        raise ConfigError(f"{file}: `defaults` must name stages, each with its settings.")
    for stage, values in given.items():
        _known(file, stage, stages)
        refuse(str(stage), _fields(values))
        for field in _fields(values):
            _known(file, field, (*roles(stages[stage]), "preset"))
    return {stage: _fields(values) for stage, values in given.items()}


def _fields(entry: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the entry with field names as keys: kind-of becomes kind_of."""
    fields = dict[str, Any]()
    for key, value in entry.items():
        name = str(key).replace("-", "_")
        fields[_Key.of(name, key.line, key.written, key.option) if isinstance(key, _Key) else name] = value
    return fields


def _step(
    file: Path, output: str, entry: Mapping[str, Any], stages: Stages, outputs: Mapping[str, Mapping[Any, Any]]
) -> PipelineStep:
    """Return the step of an entry that the defaults have filled. outputs: the entries of the file, without the defaults."""
    name = str(output)
    where = f"{_place(file, output)}: {name}"
    if "stage" not in entry:
        raise ConfigError(f"{where} needs `stage`, one of {', '.join(stages)}.")
    _known(file, entry["stage"], stages)
    stage = stages[entry["stage"]]
    given = {key: value for key, value in entry.items() if key not in OF_THE_FILE}
    given = _over(_preset(where, stage, entry), given)
    places = {key: _place_of_value(file, name, key) for key in given}
    refuse(stage.command(), given)
    for key in given:
        _known(file, key, roles(stage))
    inputs = _inputs(places, name, stage, given, {str(each) for each in outputs})
    paths = {key: value[1:] for key, value in given.items() if _is_path_in_output(value, roles(stage)[key])}
    for path in paths.values():
        _known(file, path.partition("/")[0], outputs)
    rest = {key: value for key, value in given.items() if key not in inputs and key not in paths}
    values = {key: _value(stage, key, value, places[key]) for key, value in rest.items()}
    if missing := [key for key in _required(stage) if key not in values and key not in paths]:
        raise ConfigError(f"{where} needs {missing[0].replace('_', '-')}: {roles(stage)[missing[0]].help}")
    kept = heeded(stage, {**values, **inputs, **paths}, _fields(outputs[output]))
    values = {key: value for key, value in values.items() if key in kept}
    return PipelineStep(name, stage, values, inputs, paths, _starts_after(file, where, entry, outputs))


def _starts_after(file: Path, where: str, entry: Mapping[str, object], outputs: Iterable[str]) -> frozenset[str]:
    names = entry.get("starts_after", [])
    if not isinstance(names, list):
        raise ConfigError(f"{where}.starts-after: {names!r} is not a list. Write [output, output].")
    for name in names:
        _known(file, name, outputs)
    return frozenset(map(str, names))


def _preset(where: str, stage: type[Stage], entry: Mapping[str, object]) -> Mapping[str, Any]:
    try:
        return presets.settings_of(str(entry["preset"]), stage.command()) if "preset" in entry else {}
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _inputs(
    places: Mapping[str, str], name: str, stage: type[Stage], given: Mapping[str, Any], outputs: set[str]
) -> dict[str, str]:
    """Return {field: output} for the inputs that the entry names, and for those whose field has the name of an output."""
    reads = {field: role for field, role in roles(stage).items() if role.name == "reads"}
    inputs = {}
    for field in reads.keys() & given.keys():
        if given[field] is None and reads[field].optional:
            continue  # null: this entry reads none, whatever the defaults name
        if given[field] in (outputs if isinstance(given[field], str) else ()):
            inputs[field] = given[field]
        elif not isinstance(given[field], str) or not Path(given[field]).exists():
            raise ConfigError(f"{places[field]}: {given[field]!r} is neither an output of this file nor a folder.")
    for field, role in reads.items():
        output = field.replace("_", "-")
        replaced = role.replaced_by is not None and role.replaced_by(given)
        if field not in given and not role.explicit_only and not replaced and output in outputs - {name}:
            inputs[field] = output
    return inputs


def _is_path_in_output(value: object, role: Role) -> bool:
    return role.name == "source" and isinstance(value, str) and value.startswith("@")


def _value(stage: type[Stage], key: str, value: Any, where: str) -> Any:
    role = roles(stage)[key]
    if role.name == "reads":
        return None if value is None else Path(value)
    value = typed(hints(stage)[key], value, where)
    role.check_value(value, where)
    if role.name == "source" and not role.hub:
        for path in value if isinstance(value, tuple) else (value,) if value else ():
            if not is_literal(path, role.literals) and not address_of(path) and not Path(path).expanduser().exists():
                raise InputError(f"{where}: {path} does not exist (looked from {Path.cwd()}). Check the path.")
    return value


def _required(stage: type[Stage]) -> list[str]:
    without = [item.name for item in fields(stage) if item.default is MISSING]
    return [name for name in without if roles(stage)[name].name != "reads"]
