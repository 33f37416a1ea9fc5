"""Mutants of an index folder by seed: its description, its graph file, with and without the hashes computed again."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from realmctl.artifacts.hashing import digest_file
from realmctl.extras.hnsw.hnsw import HnswIndexDescription
from realmctl.extras.hnsw.hnsw_file import _HEADER
from realmctl.index.index_type import read_index_description

ODD: list[Any] = [
    0,
    1,
    -1,
    2**31,
    2**63,
    2**64,
    10**30,
    1.5,
    1e308,
    True,
    None,
    "",
    "7",
    "hnsw",
    "exact",
    "\ud800",
    [],
    [[]],
    [[0]],
    [["x", 1]],
    [[0, 1], [0]],
    [[10**9, 1]],
    {},
    {"a": 1},
    "x" * 10_000,
]


def description(text: str, draw: random.Random) -> str:
    """A changed `index.json`: an odd, missing, exchanged, moved or new field, a flipped bit, a cut, something inserted."""
    fields = json.loads(text)
    name, place = draw.choice(sorted(fields)), draw.randrange(len(text))
    changes: list[Callable[[], str]] = [
        lambda: json.dumps({**fields, name: draw.choice(ODD)}),
        lambda: json.dumps({key: value for key, value in fields.items() if key != name}),
        lambda: json.dumps({**fields, name: fields[draw.choice(sorted(fields))]}),
        lambda: json.dumps({**fields, name: _moved(fields[name], draw)}),
        lambda: json.dumps({**fields, draw.choice(["more", "seal ", ""]): draw.choice(ODD)}),
        lambda: text[:place] + chr(ord(text[place]) ^ 1 << draw.randrange(8)) + text[place + 1 :],
        lambda: text[:place],
        lambda: text[:place] + draw.choice(["9" * 5000, "[" * 5000, "null", '"', "\0", "NaN", "\xff"]) + text[place:],
    ]
    return draw.choice(changes)()


def sealed_description(text: str, draw: random.Random) -> str:
    """An attacker's `index.json`: one field changed to another value of its type, and the seal computed again."""
    fields = json.loads(text)
    name = draw.choice(sorted(set(fields) - {"seal", "type", "metric"}))
    fields[name] = _moved(fields[name], draw)
    try:
        described = HnswIndexDescription(**fields)
        return json.dumps({**fields, "seal": described.computed_seal()})
    except (TypeError, ValueError):
        return json.dumps(fields)


def _moved(value: Any, draw: random.Random) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool | str) or value is None:
        return draw.choice(ODD)
    if isinstance(value, int):
        return draw.choice([value + 1, value - 1, 2 * value, value // 2, -value, value ^ 1 << draw.randrange(40)])
    if isinstance(value, list) and value:
        place = draw.randrange(len(value))
        return draw.choice(
            [[*value[:place], _moved(value[place], draw), *value[place + 1 :]], value[:place], value + value[place:]]
        )
    return draw.choice(ODD)


def graph(data: bytes, described: HnswIndexDescription, draw: random.Random) -> bytes:
    """A changed graph file: bits, words of the header or of a node, links, a cut, a tail, two records exchanged."""
    changed = bytearray(data)
    place, size = draw.randrange(len(data)), described.shape.record().itemsize
    kind = draw.randrange(7)
    if kind == 0:
        for _ in range(draw.choice([1, 1, 2, 8])):
            changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif kind == 1:  # a word of the header
        at = draw.randrange(0, _HEADER.size - 8, 4)
        changed[at : at + 8] = draw.choice([0, 1, 2**16, 2**31, 2**62 - 1, 2**64 - 1]).to_bytes(8, "little")
    elif kind == 2:  # a word anywhere
        at = place - place % 4
        changed[at : at + 4] = draw.choice([0, 1, described.count, 2**16 - 1, 2**31, 2**32 - 1]).to_bytes(4, "little")
    elif kind == 3:
        return rewired(data, described, draw.sample(range(described.count), draw.choice([1, 2, 10])), draw)
    elif kind == 4:
        return bytes(changed[:place])
    elif kind == 5:
        return data + draw.choice([b"\0" * 4, data[-8:], draw.randbytes(draw.randint(1, 400))])
    else:
        one, other = (_HEADER.size + size * draw.randrange(described.count) for _ in range(2))
        changed[one : one + size], changed[other : other + size] = data[other : other + size], data[one : one + size]
    return bytes(changed)


def rewired(data: bytes, described: HnswIndexDescription, nodes: list[int], draw: random.Random) -> bytes:
    """The graph file with other links of some nodes on the ground level: as many, all valid."""
    changed = bytearray(data)
    table = np.frombuffer(changed, described.shape.record(), count=described.count, offset=_HEADER.size)
    for node in nodes:
        used = int(table["links"][node])
        table["ids"][node][:used] = [draw.randrange(described.count) for _ in range(used)]
    return bytes(changed)


def described(folder: Path) -> HnswIndexDescription:
    """The checked description of an hnsw index."""
    found = read_index_description(folder)
    assert isinstance(found, HnswIndexDescription)
    return found


def reseal(folder: Path, before: HnswIndexDescription) -> None:
    """Write the hash of the changed graph file into the description, and seal it again."""
    new = dataclasses.replace(before, sha256=digest_file(folder / "hnsw.bin"))
    fields = dataclasses.asdict(dataclasses.replace(new, seal=new.computed_seal()))
    (folder / "index.json").write_text(json.dumps(fields))
