"""Files and data sets of the Hugging Face hub by `hf://`.

- `hf://datasets/OWNER/NAME[@REVISION]/PATH` is a file or a folder of a data set, and `hf://OWNER/NAME/PATH` one of a model.
- `hf://datasets/OWNER/NAME[@REVISION]` is a data set. `?split=train` names a split, `config=...` a configuration, and `columns=id,text` the columns that
  are read; without it all are that hold no bytes.

The rows of a data set are read from its Parquet files over the network, the chosen columns of them alone, a few rows at a time, and become JSON lines. A data
set in another format is read from the Parquet files that the hub makes of it, on its branch refs/convert/parquet. The package datasets
would do the same with eight more packages, among them pandas, and a cache of its own. What is here is the hub's own file system and pyarrow.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from realmctl.errors import InputError, require_package
from realmctl.extras.remote.copying import Copies, file_name, pieces_of, told
from realmctl.inputs.dataset_folders import by_split
from realmctl.inputs.reader_process import FAILED
from realmctl.pipeline.sources import Remote

ADDRESS = re.compile(
    r"hf://(?P<kind>datasets/|spaces/|)(?P<id>(?!(?:datasets|spaces|models|buckets)/)[\w.-]+/[\w.-]+)(?:@(?P<revision>[^/?]+))?(?:/(?P<path>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
CONVERTED = "refs/convert/parquet"
"""The branch with the Parquet files that the hub makes of a data set."""
WORDS = ("split", "config", "columns")
ADVICE = "Check the address, the network, and HF_TOKEN for what is not public."


@dataclass(frozen=True)
class HubAddress:
    """What an address names. `asked`: {word of the query: value}."""

    kind: str
    id: str
    revision: str | None
    path: str
    asked: dict[str, str]

    @classmethod
    def of(cls, address: str) -> HubAddress:
        """Take an address apart. Raises InputError for one that names nothing of the hub."""
        match = ADDRESS.fullmatch(address)
        if match is None:
            raise InputError(
                f"{address} is no address of the hub. Write hf://datasets/OWNER/NAME, with @REVISION, /PATH, or ?split=...&columns=... behind it."
            )
        asked = {word: values[-1] for word, values in parse_qs(match["query"] or "", keep_blank_values=True).items()}
        path = (match["path"] or "").strip("/")
        if wrong := [word for word, value in asked.items() if word not in WORDS or not value.strip()]:
            raise InputError(
                f"{address}: {wrong[0]} is not known or empty. Write {', '.join(f'{word}=...' for word in WORDS)}."
            )
        if asked and (path or match["kind"] != "datasets/"):
            raise InputError(
                f"{address}: {next(iter(asked))} is asked of a data set alone. Leave out the path or the question."
            )
        return cls(match["kind"], match["id"], unquote(match["revision"]) if match["revision"] else None, path, asked)

    def at(self, revision: str) -> str:
        """The repository at a revision, as the hub's file system names it."""
        return f"{self.kind}{self.id}@{quote(revision, safe='')}"


def fetch(address: str, folder: Path) -> Path:
    """Copy files, or the rows of a data set, into a folder."""
    from huggingface_hub import HfFileSystem

    with told(address, ADVICE):
        named = HubAddress.of(address)
        hub = HfFileSystem(skip_instance_cache=True)
        copies = Copies(address, folder)
        root = named.at(_commit(hub, named, named.revision))
        if named.kind == "datasets/" and not named.path:
            return _rows(hub, named, root, copies)
        place = f"{root}/{named.path}".rstrip("/")
        entry = hub.info(place)

        def pieces(path: str) -> Iterator[bytes]:
            yield from pieces_of(hub.open(path, "rb", block_size=0))

        if entry["type"] == "file":
            return copies.file(file_name(named.path, "file"), pieces(place), entry["size"])
        found = _files(hub, place)
        copies.folder /= file_name(named.path or named.id, "files")
        return copies.tree(found, lambda path: pieces(f"{place}/{path}"))


def _commit(hub: Any, named: HubAddress, revision: str | None) -> str:
    """The commit that a revision stands for now, so that all files are of one."""
    kind = {"datasets/": "dataset", "spaces/": "space", "": "model"}[named.kind]
    return str(hub._api.repo_info(named.id, repo_type=kind, revision=revision).sha)


def _files(hub: Any, place: str) -> dict[str, int]:
    """{path below a folder of a repository: bytes} of its files, but hidden ones."""
    found = {name.removeprefix(f"{place}/"): entry["size"] for name, entry in hub.find(place, detail=True).items()}
    return {name: size for name, size in found.items() if not any(part.startswith(".") for part in name.split("/"))}


def _rows(hub: Any, named: HubAddress, root: str, copies: Copies) -> Path:
    """Write the rows of a split as JSON lines."""
    require_package("pyarrow", "parquet", f"reading the data set {copies.address}")
    splits = _splits(hub, root)
    if not splits and named.revision is None:
        from huggingface_hub.errors import RevisionNotFoundError

        try:
            root = named.at(_commit(hub, named, CONVERTED))
            splits = _splits(hub, root)
        except (RevisionNotFoundError, FileNotFoundError):
            splits = {}
    split, files = _chosen(splits, named, copies.address)
    columns = [name.strip() for name in named.asked.get("columns", "").split(",") if name.strip()]
    place = file_name(f"{named.id.replace('/', '-')}-{split.replace('/', '-')}.jsonl", "rows.jsonl")
    return copies.file(place, _lines([f"{root}/{file}" for file in files], columns, copies.address))


def _splits(hub: Any, root: str) -> dict[str, list[str]]:
    """{split: its Parquet files in order}."""
    paths = [PurePosixPath(name) for name in sorted(_files(hub, root)) if name.endswith(".parquet")]
    return {split: [str(path) for path in files] for split, files in by_split(paths).items()}


def _chosen(splits: dict[str, list[str]], named: HubAddress, address: str) -> tuple[str, list[str]]:
    """Return the one split that an address names. Raises InputError where it names none or several."""
    split, config = named.asked.get("split"), named.asked.get("config")
    found = {
        name: files
        for name, files in splits.items()
        if (split is None or name.rpartition("/")[2] == split) and (config is None or config in name.split("/")[:-1])
    }
    if len(found) == 1:
        return next(iter(found.items()))
    if not splits:
        raise InputError(
            f"{address} has no Parquet files, and the hub has made none of it. Name a file of it: hf://datasets/{named.id}/FILE."
        )
    such = ", ".join(sorted(splits)[:20])
    what = "several of its splits fit" if found else "no split of it fits"
    raise InputError(f"{address}: {what}, and it has {such}. Name one: hf://datasets/{named.id}?config=...&split=...")


def _lines(files: list[str], columns: list[str], address: str) -> Iterator[bytes]:
    """Yield what a process of its own writes of these files: a row is a line."""
    command = [sys.executable, "-P", "-m", "realmctl.extras.remote.rows_process", json.dumps([files, columns])]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        try:
            while piece := child.stdout.read(2**16):
                yield piece
        except BaseException:
            child.kill()
            raise
        reason = child.stderr.read().decode(errors="replace").strip()
        if code := child.wait():
            why = reason if code == FAILED else f"reading it ended with code {code}: {reason[-200:] or 'no message'}"
            raise InputError(f"{address} cannot be read: {why}. {ADVICE}")


HUB = Remote(fetch, lambda address: address)
