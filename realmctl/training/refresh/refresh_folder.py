"""The folder that the trainer and its refresher share, and the only way in which they communicate.

live/refresh.json              the request: blocks, index options, number formats, token of the trainer's run
live/snapshots/step-00000500/  a retriever; written and pruned by the trainer
live/indexes/step-00000500/    an index; written and pruned by the refresher; its lineage names the snapshot
live/held.json                 steps whose indexes the trainer needs: in use, or named by a checkpoint
live/refresher.json            heartbeat: process id, token, state, step, blocks done, error
live/refresher.log             output of the refresher
live/quarantine/               damaged snapshots and indexes
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from realmctl.artifacts import MANIFEST, Artifact, open_artifact, verify
from realmctl.artifacts.durable import sync
from realmctl.artifacts.quarantine import QUARANTINE, set_aside
from realmctl.errors import InputError, MismatchError
from realmctl.index.index_type import IndexOptions
from realmctl.training.scratch_files import read_sealed, write_sealed

STEP = re.compile(r"step-(\d{8})")
KEPT_SNAPSHOTS = 2
KEPT_INDEXES = 2
REQUEST, HELD, HEARTBEAT, LOG = "refresh.json", "held.json", "refresher.json", "refresher.log"
TOKEN_CHARACTERS = 8
"""Characters of the token in the name of an unfinished index."""


@dataclass(frozen=True)
class RefreshRequest:
    """The trainer's request to its refresher: how to build an index from a snapshot.

    `blocks` is a path. `index` are the fields of `IndexOptions`. Every start of a trainer makes a new `token`. A refresher
    that was started for another token must not deliver indexes any more.
    """

    blocks: str
    index: Mapping[str, Any]
    dtype: Literal["float32", "float16"]
    precision: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def options(self) -> IndexOptions:
        """The options of the index."""
        return IndexOptions(**self.index)


@dataclass(frozen=True)
class RefreshFolder:
    """Access to the shared folder at `path`.

    `snapshots_search`: queries are embedded with the snapshot of the index, so snapshots whose index may still be built
    are kept.
    """

    path: Path
    snapshots_search: bool = False

    @property
    def snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def indexes(self) -> Path:
        return self.path / "indexes"

    def place(self, request: RefreshRequest) -> None:
        """Write the request of a starting trainer, and remove unfinished files of interrupted writers."""
        for folder in (self.snapshots, self.indexes):
            folder.mkdir(parents=True, exist_ok=True)
        write_sealed(self.path / REQUEST, asdict(request))
        for folder in (self.snapshots, self.indexes):
            for child in folder.iterdir():
                if not STEP.fullmatch(child.name):
                    shutil.rmtree(child, ignore_errors=True)
                elif not (child / MANIFEST).is_file():
                    self.set_aside(child, f"{child} has no manifest.")

    def request(self) -> RefreshRequest:
        """Read the request.

        Raises:
            InputError: There is none, or it is damaged.
        """
        path = self.path / REQUEST
        try:
            return RefreshRequest(**read_sealed(path))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{path} is not a refresh request ({error}). Name the `live` folder of a running pretrain: "
                "<series>/vN.partial/live."
            ) from None

    def has_token(self, token: str) -> bool:
        """Return whether the request still has this token. A request that cannot be read counts as unchanged."""
        try:
            return self.request().token == token
        except InputError:
            return True

    def hold(self, steps: Iterable[int]) -> None:
        """Record the steps whose indexes and snapshots must not be pruned."""
        write_sealed(self.path / HELD, sorted(set(steps)))

    def held(self) -> set[int] | None:
        """Return the steps of `hold`; None when the file is damaged, so that nothing may be pruned."""
        try:
            return set(read_sealed(self.path / HELD))
        except FileNotFoundError:
            return set()
        except (OSError, ValueError):
            return None

    def held_snapshots(self) -> set[int] | None:
        """Return the steps whose snapshots are needed: to rebuild a damaged index, or to search with."""
        held = self.held()
        if held is None or not self.snapshots_search:
            return held
        return held | {step for step in steps_in(self.snapshots) if step > max(held, default=0)}

    def whole(self, path: Path, retriever: str | None = None) -> Artifact | None:
        """Return a snapshot or an index with every byte verified; None when it is missing or damaged.

        A damaged one is moved to the quarantine folder with a warning.

        Args:
            path: Where it is, `at_step(...)`.
            retriever: Content of the retriever that an index must be made with. An index made with another retriever is
                ignored.
        """
        try:
            artifact = open_artifact(path)
            if retriever is not None and artifact.lineage.get("retriever") != retriever:
                return None
            verify(artifact)
        except (InputError, MismatchError) as error:
            self.set_aside(path, str(error))
            return None
        except OSError:  # it is being replaced or pruned
            return None
        return artifact

    def set_aside(self, path: Path, reason: str) -> None:
        """Move a damaged snapshot or index into the quarantine folder, with a warning."""
        set_aside(path, self.path / QUARANTINE, f"{reason} It will be made again.")

    def private_name(self, step: int, token: str) -> Path:
        """Return the path where this process alone writes the index of a step, before `deliver`."""
        return self.indexes / f"{at_step(self.indexes, step).name}{writer_suffix(token, os.getpid())}"

    def deliver(self, private: Path, step: int) -> None:
        """Give a finished index its final name. An index of an earlier attempt at this step is removed."""
        final = at_step(self.indexes, step)
        remove(final)
        private.rename(final)
        sync(self.indexes)


def writer_suffix(token: str, process: int) -> str:
    """Return the end of the names of everything unfinished that a refresher process writes."""
    return f".{token[:TOKEN_CHARACTERS]}-{process}"


def steps_in(folder: Path) -> list[int]:
    """Return the steps of the committed artifacts below `folder`, ascending."""
    try:
        children = list(folder.iterdir())
    except FileNotFoundError:  # a run that ends removes its live folder
        return []
    matches = (STEP.fullmatch(child.name) for child in children if (child / MANIFEST).is_file())
    return sorted(int(match[1]) for match in matches if match)


def at_step(folder: Path, step: int) -> Path:
    """Return the path of the artifact of a step."""
    return folder / f"step-{step:08d}"


def prune(folder: Path, keep: int, held: Collection[int] | None = ()) -> None:
    """Remove all but the newest `keep` steps and the held ones. Remove nothing when `held` is None (not known)."""
    if held is not None:
        for step in steps_in(folder)[:-keep]:
            if step not in held:
                remove(at_step(folder, step))


def remove(path: Path) -> None:
    """Delete a snapshot or an index. It disappears by one rename, so that no reader sees half of it."""
    doomed = path.with_name(f"{path.name}.removed-{os.getpid()}")
    try:
        path.rename(doomed)
    except FileNotFoundError:
        return
    shutil.rmtree(doomed, ignore_errors=True)


def read_heartbeat(folder: RefreshFolder) -> dict[str, Any]:
    """Return the last heartbeat of a refresher; an empty one when there is none, or it is damaged."""
    try:
        beat = json.loads((folder.path / HEARTBEAT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return beat if isinstance(beat, dict) else {}
