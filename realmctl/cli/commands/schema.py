"""`realmctl schema`: print the JSON Schema of pipeline files."""

from __future__ import annotations

from json import dumps

from realmctl.cli import available_stages
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json
from realmctl.pipeline.schema import schema as schema_of


def schema(json: Json = False) -> None:
    """Print the JSON Schema of pipeline files, with the stages of installed plug-ins. --json prints it on one line.

    Editors complete and check a file by it that begins with `# yaml-language-server: $schema=pipeline.schema.json`.
    """
    found = schema_of(available_stages.available_stages())
    print_result(found, json, lambda value: dumps(value, indent=1, ensure_ascii=False))
