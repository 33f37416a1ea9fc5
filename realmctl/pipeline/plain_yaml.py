"""YAML from outside: mappings, lists and texts, and nothing that a short file could grow by or that could fail in Python."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import yaml


class PlainLoader(yaml.SafeLoader):
    """Safe YAML without aliases (a short file can expand to gigabytes) and without tags, which may name a type that a text is not.

    What YAML 1.1 takes for a number, a date or a truth value stays a text, except for the `types` that a subclass names.
    """

    def __init_subclass__(cls, types: Collection[str]) -> None:
        tags = [f"tag:yaml.org,2002:{name}" for name in types]
        cls.yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag in tags]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    def compose_node(self, parent: Any, index: Any) -> Any:
        parser: Any = self  # whose types are not known
        event = parser.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not supported; write the value in each place")
        if event.tag is not None:
            raise yaml.YAMLError(f"line {event.start_mark.line + 1}: tags ({event.tag}) are not supported")
        return super().compose_node(parent, index)
