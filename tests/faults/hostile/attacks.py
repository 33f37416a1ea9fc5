"""What an attacker does to an artifact: any value, byte, array, weight, record or file changed, and all hashes computed again."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from realmctl.artifacts import MANIFEST
from realmctl.artifacts.hashing import digest_file, sealed
from realmctl.artifacts.records import Records, RecordWriter, frames_path
from tests.faults.tampering import compute_hashes

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    7,
    2**31,
    2**63,
    10**30,
    1.5,
    -0.0,
    1e308,
    "",
    "x",
    "../x",
    "/etc/passwd",
    "a\nb",
    "\x1b[2J",
    "x" * 5000,
    [],
    {},
    [[]],
    [1, "a"],
    {"a": {"b": []}},
    [0] * 1000,
    ["x"] * 300,
    "0" * 64,
]
Attack = Callable[[Path, random.Random], None]
"""Changes an artifact in its folder."""


def reseal(folder: Path) -> None:
    """Compute every hash of an artifact again, from its deepest part up, as far as its manifest can still be read."""
    path = folder / MANIFEST
    manifest = json.loads(path.read_text())
    for name in manifest["parts"]:
        reseal(folder / name)
        manifest["parts"][name] = json.loads((folder / name / MANIFEST).read_text())["content"]
    for name in list(manifest["files"]):
        file = folder / name
        if file.is_file() and not file.is_symlink():
            manifest["files"][name] = {"bytes": file.stat().st_size, "sha256": digest_file(file)}
    compute_hashes(manifest)
    path.unlink()
    path.write_text(json.dumps(sealed(manifest), indent=1) + "\n")


def files_of(folder: Path, suffix: str = "", *, manifests: bool = False) -> list[Path]:
    """The files below a folder, in order."""
    found = (path for path in sorted(folder.rglob(f"*{suffix}")) if path.is_file() and not path.is_symlink())
    return [path for path in found if path.stat().st_size and (path.name == MANIFEST) == manifests]


def change_json(value: Any, draw: random.Random) -> Any:
    """The value with one of its values replaced, left out, or given twice."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        name = draw.choice(sorted(value))
        if draw.random() < 0.15:
            return {key: each for key, each in value.items() if key != name}
        if draw.random() < 0.1:
            return {**value, draw.choice(["more", "../x", ""]): value[name]}
        return {**value, name: change_json(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        place = draw.randrange(len(value))
        changed = [change_json(value[place], draw)] if draw.random() < 0.8 else [value[place]] * 2
        return value[:place] + changed + value[place + 1 :]
    if isinstance(value, int) and draw.random() < 0.5:
        return draw.choice([value + 1, value - 1, -value, 2 * value, value * 10**6])
    return draw.choice(ODD)


def write(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def manifest_value(folder: Path, draw: random.Random) -> None:
    path = draw.choice(files_of(folder, MANIFEST, manifests=True))
    manifest = change_json(json.loads(path.read_text()), draw)
    if isinstance(manifest, dict):
        manifest = sealed(manifest)
    path.unlink()
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def manifest_bytes(folder: Path, draw: random.Random) -> None:
    path = draw.choice(files_of(folder, MANIFEST, manifests=True))
    write(path, _garbled(path.read_bytes(), draw))


def json_value(folder: Path, draw: random.Random) -> None:
    found = files_of(folder, ".json")
    if found:
        path = draw.choice(found)
        write(path, json.dumps(change_json(json.loads(path.read_text()), draw)).encode())
    reseal(folder)


def some_bytes(folder: Path, draw: random.Random) -> None:
    path = draw.choice(files_of(folder))
    write(path, _garbled(path.read_bytes(), draw))
    reseal(folder)


def array(folder: Path, draw: random.Random) -> None:
    """Another shape, type or order, or values at the limits."""
    found = files_of(folder, ".npy")
    if found:
        path = draw.choice(found)
        values = np.load(path, allow_pickle=False)
        write(path, _changed_array(values, draw))
    reseal(folder)


def _changed_array(values: np.ndarray, draw: random.Random) -> bytes:
    kind = draw.randrange(5)
    if kind == 0:
        values = values.astype(draw.choice(["<f8", "<i2", "|u1", "<c8", "|S3", "?"]))
    elif kind == 1:
        values = draw.choice(
            [values[:0], values[: len(values) // 2], np.repeat(values, 3, axis=0), values[None], values[::-1]]
        )
    elif kind == 2:
        values = values.copy()
        limits = [np.nan, np.inf, -np.inf, 1e38] if values.dtype.kind == "f" else _limits(values.dtype)
        values.flat[draw.randrange(values.size)] = draw.choice(limits)
    elif kind == 3:
        values = np.asfortranarray(np.full_like(values, draw.choice([0, 1, 7])))
    buffer = io.BytesIO()
    np.save(buffer, values)
    data = buffer.getvalue()
    if kind == 4:
        data = data.replace(b"(", b"(" + draw.choice([b"9", b"99999999999, ", b"-1, ", b"0, "]), 1)
    return data


def _limits(dtype: np.dtype[Any]) -> list[int]:
    return [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)] if dtype.kind in "iu" else [0, 1]


def weights(folder: Path, draw: random.Random) -> None:
    """A changed header of safetensors, or numbers that are no numbers."""
    found = files_of(folder, ".safetensors")
    if found:
        path = draw.choice(found)
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
        if draw.random() < 0.6:
            header = change_json(header, draw)
        else:
            at = draw.randrange(0, len(body), 4)
            body[at : at + 4] = np.float32(draw.choice([np.nan, np.inf, 1e38])).tobytes()
        text = json.dumps(header).encode()
        write(path, len(text).to_bytes(8, "little") + text + bytes(body))
    reseal(folder)


def records(folder: Path, draw: random.Random) -> None:
    """Other records, written as realmctl writes them."""
    found = files_of(folder, ".jsonl.zst")
    if found:
        path = draw.choice(found)
        before = list(Records(path))
        place = draw.randrange(len(before))
        odd = draw.choice([change_json(before[place], draw), {}, {"text": "x" * 10**6}, before[place]])
        odd = odd if isinstance(odd, dict) else {"text": odd}
        after = [*before[:place], odd, *before[place + draw.randrange(2) :]]
        for old in (path, frames_path(path)):
            old.unlink()
        with RecordWriter(path) as writer:
            for record in after:
                writer.write(record)
    reseal(folder)


def exchanged(folder: Path, draw: random.Random) -> None:
    """One file in the place of another one."""
    one, other = draw.choice(files_of(folder)), draw.choice(files_of(folder))
    write(one, other.read_bytes())
    reseal(folder)


def special(folder: Path, draw: random.Random) -> None:
    """Something that is no regular file, or that is not in the manifest."""
    path = draw.choice(files_of(folder) + files_of(folder, manifests=True))
    kind = draw.randrange(6)
    if kind == 0:
        (path.parent / draw.choice(["more", ".hidden", "live", "x" * 200])).write_text("more")
        return
    path.unlink()
    if kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(draw.choice(["/dev/zero", "/etc/passwd", path.name, "manifest.json", ".."]))
    elif kind == 3:
        path.mkdir()
    elif kind == 4:
        path.symlink_to("/dev/full")


def _garbled(data: bytes, draw: random.Random) -> bytes:
    place, kind = draw.randrange(len(data)), draw.randrange(5)
    if kind == 0:
        return data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]
    if kind == 1:
        return data[:place]
    if kind == 2:
        return (
            data[:place] + draw.choice([b"\0", b"[" * 20_000, b"\xff\xfe", b"9" * 5000, b'"', b"\n\n"]) + data[place:]
        )
    if kind == 3:
        return draw.randbytes(min(len(data), 5000))
    return data[:place] + data[place // 2 :]


ATTACKS: list[Attack] = [
    manifest_value,
    manifest_bytes,
    json_value,
    some_bytes,
    array,
    weights,
    records,
    exchanged,
    special,
]


def attacked(source: Path, target: Path, draw: random.Random) -> str:
    """Copy an artifact and attack the copy. Returns the name of the attack."""
    shutil.copytree(source, target)
    attack = draw.choice(ATTACKS)
    attack(target, draw)
    return attack.__name__
