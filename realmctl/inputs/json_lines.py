"""Files in which each line is one JSON value."""

from __future__ import annotations

import json
from typing import Any

from realmctl.errors import InputError


def json_value(line: str, where: str) -> Any:
    """Return the value of a line. Raises InputError naming `where` (file:line) if it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON ({error}). Correct or remove the line.") from None


def json_object(line: str, where: str) -> dict[str, Any]:
    """Return the object of a line. Raises InputError naming `where` (file:line) if it is none."""
    value = json_value(line, where)
    if not isinstance(value, dict):
        raise InputError(
            f"{where}: a JSON {type(value).__name__}, but an object is expected. Correct or remove the line."
        )
    return value
