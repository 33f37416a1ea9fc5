"""The types of index by name. Nothing heavy is imported here, so that the command line can list the names."""

from __future__ import annotations

from realmctl.registry import Registry

INDEX_TYPES = Registry("index type", group="realmctl.indexes", core={"exact": "realmctl.index.exact:ExactIndexType"})
