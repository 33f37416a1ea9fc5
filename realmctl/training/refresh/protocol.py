"""The refresh protocol: how the index keeps up with a retriever that learns (REALM, section 3.3).

REALM finds the candidates of a query x by maximum inner product search over the vectors Embed(z) of all blocks z. Each
training step changes Embed, and the index holds the vectors of the weights with which it was built: it ages. Millions of blocks
cannot be embedded again at each step of a few hundred queries. So two jobs run side by side, the trainer with the weights θ and
the refresher with older weights θ':

    trainer      one step after the other with the index in use; every few hundred steps it leaves a snapshot of θ
    refresher    takes the newest snapshot as θ', embeds every block with it, builds an index, delivers it; and again

Age costs little, because the index only *chooses* the candidates. Their scores f(x, z), the distribution p(z|x) and its gradient are
computed again with θ in every step. What an old index costs is a candidate that the new weights would have preferred. Fine-tuning
trains no block encoder, so it needs no refresh.

One refresh, in the order in which it happens:

1. After step s the trainer writes the retriever to `snapshots/step-s`.
2. The refresher finds it. It always takes the newest snapshot and skips those that it missed. It verifies every byte, embeds the
   blocks, builds the index under a name that only it uses, measures the recall, and renames the index to `indexes/step-s`.
3. Before each step the trainer looks for an index that is newer than the one in use. It counts only if its lineage names the
   snapshot that this run took at step s, and if every byte has its hash. The trainer notes in `held.json` that it needs the
   index, writes a line to the run's `journal.jsonl`, and then searches it.
4. A checkpoint names the index in use by step and content hash. A run that continues from it opens exactly that index, or builds
   it again from its snapshot.

`kinds` has the three ways to do this (inline, background, lockstep), and `index_in_use` is what training sees of it.

The two jobs share a folder and nothing else. They may run on two devices, or on two hosts that see the folder. Each file has one
writer, and it changes by one rename, so whoever is killed at whatever moment leaves nothing half written behind:

    live/refresh.json              the request: blocks, index options, number formats, token of the trainer's run
    live/snapshots/step-00000500/  a retriever; written and pruned by the trainer
    live/indexes/step-00000500/    an index; written and pruned by the refresher; its lineage names the snapshot
    live/held.json                 steps whose indexes the trainer needs: in use, or named by a checkpoint
    live/refresher.json            heartbeat: process id, token, state, step, blocks done, error
    live/refresher.log             output of the refresher
    live/quarantine/               damaged snapshots and indexes

Each start of a trainer writes a request with a new token. A refresher that serves another token may not deliver: it outlived its
trainer, and the run that goes on takes its own snapshots. What is damaged moves to `quarantine/` and is made again: an index from
its snapshot, a snapshot from the retriever in training.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypedDict, cast

from realmctl.artifacts import MANIFEST, Artifact, open_artifact, verify
from realmctl.artifacts.disk import QUARANTINE, set_aside, sync, write_file
from realmctl.artifacts.hashing import read_sealed, write_sealed
from realmctl.errors import InputError, MismatchError, RealmctlError, as_realmctl_error
from realmctl.index.settings import IndexSettings, index_settings
from realmctl.retrieval.embedding.settings import Dtype

STEP = re.compile(r"step-(\d{8})")
KEPT = 2
"""Number of the newest snapshots, and of the newest indexes, that are kept whether the trainer needs them or not."""
REQUEST, HELD, HEARTBEAT, LOG = "refresh.json", "held.json", "refresher.json", "refresher.log"
TOKEN_CHARACTERS = 8
"""Characters of the token in the name of an unfinished index."""


@dataclass(frozen=True)
class RefreshRequest:
    """The trainer's request to its refresher: how to build an index from a snapshot.

    Attributes:
        blocks: Path of the blocks.
        index: Options of the index.
        former: Path of the index that the run begins with. What was trained for it is used again.
        dtype: Number format of the vectors.
        precision: Arithmetic of the embedding.
        token: Made anew at every start of a trainer.
    """

    blocks: str
    index: IndexSettings
    former: str
    dtype: Dtype
    precision: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)


class Beat(TypedDict, total=False):
    """A heartbeat of the refresher.

    The states are starting, waiting, embedding, building (graph and recall), failed, and diverged: vectors of the snapshot are not
    finite. `cpu_seconds` is the processor time, which shows progress while the state is building.
    """

    pid: int
    token: str
    state: Literal["starting", "waiting", "embedding", "building", "failed", "diverged"]
    step: int
    blocks_done: int
    cpu_seconds: int
    error: str | None
    count: int


@dataclass(frozen=True)
class StepFolder:
    """Artifacts that are named after training steps: `path`/step-00000500 is the one of step 500."""

    path: Path

    def at(self, step: int) -> Path:
        """Return the path of the artifact of a step."""
        return self.path / f"step-{step:08d}"

    def has(self, step: int) -> bool:
        """Return whether the artifact of a step is complete. It may be damaged."""
        return (self.at(step) / MANIFEST).is_file()

    def steps(self) -> list[int]:
        """Return the steps of the complete artifacts, ascending."""
        try:
            found = [int(name[1]) for child in self.path.iterdir() if (name := STEP.fullmatch(child.name))]
        except FileNotFoundError:  # a run that ends removes its live folder
            return []
        return sorted(step for step in found if self.has(step))

    def newest(self) -> int:
        """Return the step of the newest complete artifact, 0 when there is none."""
        return max(self.steps(), default=0)

    def whole(self, step: int, retriever: str | None = None) -> Artifact | None:
        """Return the artifact of a step with every byte verified; None when it is missing or damaged.

        A damaged one is set aside.

        Args:
            step: The step.
            retriever: Content hash of the retriever that an index must be made with. An index of another one counts as missing.
        """
        if not self.at(step).exists():
            return None
        try:
            artifact = open_artifact(self.at(step))
            if retriever is not None and artifact.lineage.get("retriever") != retriever:
                return None
            verify(artifact)
        except (InputError, MismatchError) as error:
            self.set_aside(step, str(error))
            return None
        except OSError:  # it is being replaced or pruned
            return None
        return artifact

    def set_aside(self, step: int, reason: str) -> None:
        """Move a damaged artifact into the quarantine folder, with a warning."""
        set_aside(self.at(step), self.path.parent / QUARANTINE, f"{reason} It will be made again.")

    def remove(self, step: int) -> None:
        """Delete the artifact of a step. It disappears by one rename, so that no reader sees half of it."""
        doomed = self.path / f"{self.at(step).name}.removed-{os.getpid()}"
        try:
            self.at(step).rename(doomed)
        except FileNotFoundError:
            return
        shutil.rmtree(doomed, ignore_errors=True)

    def prune(self, needed: Collection[int]) -> None:
        """Delete all but the newest two artifacts and those of the needed steps."""
        for step in self.steps()[:-KEPT]:
            if step not in needed:
                self.remove(step)

    def tidy(self) -> None:
        """Make the folder, and remove what interrupted writers left there."""
        self.path.mkdir(parents=True, exist_ok=True)
        for child in self.path.iterdir():
            if not (name := STEP.fullmatch(child.name)):
                shutil.rmtree(child, ignore_errors=True)
            elif not self.has(int(name[1])):
                self.set_aside(int(name[1]), f"{child} has no manifest.")


@dataclass(frozen=True)
class RefreshFolder:
    """The shared folder, at `path`."""

    path: Path

    @property
    def snapshots(self) -> StepFolder:
        return StepFolder(self.path / "snapshots")

    @property
    def indexes(self) -> StepFolder:
        return StepFolder(self.path / "indexes")

    def place(self, request: RefreshRequest) -> None:
        """Write the request of a starting trainer, and remove what interrupted writers left."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_sealed(self.path / REQUEST, asdict(request))
        self.snapshots.tidy()
        self.indexes.tidy()

    def request(self) -> RefreshRequest:
        """Read the request.

        Raises:
            InputError: There is none, or it is damaged.
        """
        path = self.path / REQUEST
        try:
            values = read_sealed(path)
            return RefreshRequest(**{**values, "index": index_settings()(**values["index"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise as_realmctl_error(error, path) or InputError(
                f"{path} is not a refresh request ({error}). Name the `live` folder of a running pretrain: "
                "<series>/vN.partial/live."
            ) from None

    def has_token(self, token: str) -> bool:
        """Return whether the request still has this token. A request that cannot be read counts as unchanged."""
        try:
            return self.request().token == token
        except RealmctlError:
            return True

    def hold(self, steps: Iterable[int]) -> None:
        """Record the steps whose indexes the trainer needs."""
        write_sealed(self.path / HELD, {"steps": sorted(set(steps))})

    def held(self) -> set[int] | None:
        """Return the steps of `hold`; None when the file cannot be read, so that nothing may be pruned."""
        try:
            return set(read_sealed(self.path / HELD)["steps"])
        except FileNotFoundError:
            return set()
        except (OSError, ValueError, RealmctlError):
            return None

    def beat(self, beat: Beat) -> None:
        """Write the heartbeat."""
        write_file(self.path / HEARTBEAT, json.dumps(beat).encode(), durable=False, shared=True)

    def last_beat(self) -> Beat:
        """Return the last heartbeat of a refresher; an empty one when there is none, or it is damaged."""
        try:
            beat = json.loads((self.path / HEARTBEAT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return cast(Beat, beat) if isinstance(beat, dict) else {}

    def unfinished(self, step: int, token: str, process: int) -> Path:
        """Return the path where one refresher process alone writes the index of a step, before `deliver`."""
        return self.indexes.path / f"{self.indexes.at(step).name}.{token[:TOKEN_CHARACTERS]}-{process}"

    def deliver(self, unfinished: Path, step: int) -> None:
        """Give a finished index its final name. An index of an earlier attempt at this step is removed."""
        self.indexes.remove(step)
        unfinished.rename(self.indexes.at(step))
        sync(self.indexes.path)

    def remove_unfinished(self, token: str, process: int) -> None:
        """Delete every unfinished index of a refresher process."""
        name = f"step-*.{token[:TOKEN_CHARACTERS]}-{process}"
        for path in [*self.indexes.path.glob(name), *self.indexes.path.glob(f"{name}.*")]:
            shutil.rmtree(path, ignore_errors=True)
