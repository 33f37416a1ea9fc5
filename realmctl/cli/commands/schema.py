"""`realmctl schema`: print the JSON Schema of pipeline files."""

from __future__ import annotations

import json

from realmctl.cli import available_stages
from realmctl.pipeline.schema import schema as schema_of


def schema() -> None:
    """Print the JSON Schema of pipeline files, with the stages of installed plug-ins.

    Editors complete and check a file by it that begins with `# yaml-language-server: $schema=pipeline.schema.json`.
    """
    print(json.dumps(schema_of(available_stages.available_stages()), indent=1, ensure_ascii=False))
