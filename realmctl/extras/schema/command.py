"""`realmctl schema`: print the JSON Schema of pipeline files."""

from __future__ import annotations

from json import dumps

from realmctl.cli import available_stages
from realmctl.extras.schema.schema import schema as schema_of
from realmctl.pipeline import Command, Show


class Schema(Command):
    """Print the JSON Schema of pipeline files, with the stages of installed plug-ins. --json prints it on one line.

    Editors complete and check a file by it that begins with `# yaml-language-server: $schema=pipeline.schema.json`.
    """

    def run(self, show: Show) -> None:
        found = schema_of(available_stages.available_stages())
        show(found, lambda value: dumps(value, indent=1, ensure_ascii=False))
