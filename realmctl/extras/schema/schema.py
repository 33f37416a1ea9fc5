"""The JSON Schema of pipeline files, by which editors complete and check them: `realmctl schema`.

A schema knows one file and no other: whether an input is an output of the file or a folder, and whether settings go together,
`realmctl run --dry-run` says.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from realmctl.pipeline import presets
from realmctl.pipeline.fields import Role, hints, roles
from realmctl.pipeline.pipeline_file import OUTPUT_NAME, Stages
from realmctl.pipeline.stage import Stage

Schema = dict[str, Any]
VARIABLE: Schema = {"type": "string", "pattern": r"\$"}
"""A value with a variable may stand for any other value."""
NUMBER: Schema = {"type": "string", "pattern": r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"}
"""A number as text, such as 1e-3 for YAML 1.1."""
TEXT: Schema = {"type": ["string", "number"]}


def schema(stages: Stages) -> Schema:
    """Return the schema (draft 2020-12) of pipeline files that name these stages: {command: stage}."""
    entries = {name: _entry(stage) for name, stage in stages.items()}
    chosen = [
        {"if": {"properties": {"stage": {"const": name}}}, "then": {"$ref": f"#/$defs/{name}"}} for name in stages
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A pipeline of realmctl run",
        "type": "object",
        "additionalProperties": False,
        "required": ["stages"],
        "properties": {
            "workspace": {"type": "string", "description": "Folder of the outputs' series. Default: artifacts."},
            "vars": {
                "type": "object",
                "description": "Values that are used as ${name}; --var name=value replaces one.",
                "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            },
            "defaults": {
                "type": "object",
                "description": "Settings of every output of a stage, unless the output has its own.",
                "additionalProperties": False,
                "properties": {name: {"$ref": f"#/$defs/{name}"} for name in stages},
            },
            "stages": {
                "type": "object",
                "description": "The outputs by name, each with its stage, inputs and settings.",
                "propertyNames": {"pattern": f"^{OUTPUT_NAME.pattern}$"},
                "additionalProperties": {
                    "type": "object",
                    "required": ["stage"],
                    "properties": {"stage": {"enum": [*stages]}},
                    "allOf": chosen,
                },
            },
        },
        "$defs": entries,
    }


def _entry(stage: type[Stage]) -> Schema:
    own, types = roles(stage), hints(stage)
    properties: Schema = {
        "stage": {"const": stage.command()},
        "starts-after": {
            "type": "array",
            "items": {"type": "string"},
            "description": "With --jobs: outputs that are made first, though they are not read.",
        },
    }
    if names := presets.names_for(stage.command()):
        properties["preset"] = {"anyOf": [{"enum": [*names]}, VARIABLE], "description": "Settings of a paper."}
    for name, role in own.items():
        properties[name.replace("_", "-")] = {"description": role.help, **_value(types[name], role)}
    underscored = [name for name in (*own, "starts_after") if "_" in name]
    return {
        "type": "object",
        "description": " ".join((stage.__doc__ or "").partition("\n\n")[0].split()),
        "properties": properties,
        "patternProperties": {f"^({'|'.join(underscored)})$": {}},  # the same names, which editors need not offer
        "additionalProperties": False,
    }


def _value(hint: Any, role: Role) -> Schema:
    kinds = [hint]
    if NoneType in typing.get_args(hint):
        kinds = [*(set(typing.get_args(hint)) - {NoneType}), NoneType]
    if role.name == "reads":
        kinds = [str, *([NoneType] if role.optional else [])]
    forms = [form for kind in kinds for form in _forms(kind, role)]
    return {"anyOf": [*forms, *([] if TEXT in forms else [VARIABLE])]}


def _forms(kind: Any, role: Role) -> list[Schema]:
    if typing.get_origin(kind) is tuple:
        inner = _forms(typing.get_args(kind)[0], role)
        return [{"type": "array", "items": {"anyOf": [*inner, VARIABLE]}}, *inner]
    if typing.get_origin(kind) is typing.Literal:
        return [{"enum": [*typing.get_args(kind)]}]
    if role.choices is not None and kind is str:
        return [{"enum": [*role.choices()]}]
    limits = {
        name: limit
        for name, limit in {
            "minimum": role.range.at_least,
            "exclusiveMinimum": role.range.above,
            "maximum": role.range.at_most,
            "exclusiveMaximum": role.range.below,
        }.items()
        if limit is not None
    }
    forms: Mapping[Any, Schema] = {
        NoneType: {"type": "null"},
        bool: {"type": "boolean"},
        int: {"type": "integer", **limits},
        float: {"type": "number", **limits},
        str: TEXT,
        Path: TEXT,
    }
    return [forms[kind], NUMBER] if kind in (int, float) else [forms[kind]]
