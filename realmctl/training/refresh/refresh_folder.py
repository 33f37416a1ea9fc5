"""The folder that a trainer and its refresher share, and nothing else: both messages are artifacts.

live/refresh.json              the order: blocks, index options, number formats
live/snapshots/step-00000500/  the retriever, written and pruned by the trainer
live/indexes/step-00000500/    written and pruned by the refresher; its lineage names the snapshot
live/held.json                 steps whose indexes the trainer still needs (in use, or named by a checkpoint)
live/refresher.json            heartbeat: pid, state, step, blocks done, error
live/refresher.log             what the refresher said
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from realmctl.artifacts import MANIFEST, Artifact, Origin, lineage_of, open_artifact, writing
from realmctl.errors import InputError
from realmctl.index.build import IndexOptions
from realmctl.index.build import build as build_index
from realmctl.nn.inputs import Collator
from realmctl.nn.precision import pick_device
from realmctl.nn.retriever import Retriever
from realmctl.retrieval.corpus import Corpus
from realmctl.retrieval.initial_encoder import packer_of, tokenizer_of
from realmctl.retrieval.search.embedding import embed_corpus

STEP = re.compile(r"step-(\d{8})")
KEPT_SNAPSHOTS = 2
KEPT_INDEXES = 2
ORDER, HELD, HEARTBEAT, LOG = "refresh.json", "held.json", "refresher.json", "refresher.log"


@dataclass(frozen=True)
class RefreshRequest:
    """What the trainer asks of its refresher, beside the snapshots."""

    blocks: str
    index: Mapping[str, Any]
    dtype: Literal["float32", "float16"]
    precision: str

    @property
    def options(self) -> IndexOptions:
        """How to build."""
        return IndexOptions(**self.index)


@dataclass(frozen=True)
class RefreshFolder:
    """Access to the shared folder. `snapshots_search`: an index is searched with its snapshot, which must stay with it."""

    folder: Path
    snapshots_search: bool = False

    @property
    def snapshots(self) -> Path:
        return self.folder / "snapshots"

    @property
    def indexes(self) -> Path:
        return self.folder / "indexes"

    def place(self, order: RefreshRequest) -> None:
        """Write the order, before anything else is there to be read."""
        for folder in (self.snapshots, self.indexes):
            folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / ORDER, asdict(order))

    def order(self) -> RefreshRequest:
        """Read the order. Raises InputError when there is none."""
        path = self.folder / ORDER
        try:
            return RefreshRequest(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{path} is no refresh order ({error}). Name the `live` folder of a running pretrain: <series>/vN.partial/live."
            ) from None

    def hold(self, steps: Iterable[int]) -> None:
        """Say which indexes must not be pruned."""
        write_json(self.folder / HELD, sorted(set(steps)))

    def held(self) -> set[int]:
        """The steps of `hold`."""
        try:
            return set(json.loads((self.folder / HELD).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return set()

    def searching(self) -> set[int]:
        """The steps whose snapshots search, or will when their index is there."""
        if not self.snapshots_search:
            return set()
        held = self.held()
        coming = {step for step in steps_in(self.snapshots) if step > max(held, default=0)}
        return held | coming


def steps_in(folder: Path) -> list[int]:
    """Steps of the committed artifacts below `folder`, ascending."""
    try:
        children = list(folder.iterdir())
    except FileNotFoundError:  # a run that ends takes its live folder with it
        return []
    matches = (STEP.fullmatch(child.name) for child in children if (child / MANIFEST).is_file())
    return sorted(int(match[1]) for match in matches if match)


def at_step(folder: Path, step: int) -> Path:
    """Where the artifact of a step lies."""
    return folder / f"step-{step:08d}"


def write_json(path: Path, value: Any) -> None:
    """Replace a small file in one move, so that a reader sees the old or the new."""
    writing_path = path.with_name(path.name + ".writing")
    writing_path.write_text(json.dumps(value), encoding="utf-8")
    writing_path.replace(path)


def prune(folder: Path, keep: int, held: Iterable[int] = ()) -> None:
    """Drop all but the newest `keep` steps and the held ones."""
    needed = set(held)
    for step in steps_in(folder)[:-keep]:
        if step not in needed:
            shutil.rmtree(at_step(folder, step), ignore_errors=True)


def take_snapshot(live: RefreshFolder, origin: Origin, step: int, retriever: Retriever, tokenizer: Path) -> Artifact:
    """Commit the retriever as it is now. One that is there already is of the same step of the same run: it is taken."""
    path = at_step(live.snapshots, step)
    if (path / MANIFEST).is_file():
        return open_artifact(path)
    snapshot = write_retriever(path, origin, retriever, tokenizer, {"step": step})
    prune(live.snapshots, KEPT_SNAPSHOTS, live.searching())
    return snapshot


def write_retriever(
    path: Path, origin: Origin, retriever: Retriever, tokenizer: Path, metrics: Mapping[str, Any]
) -> Artifact:
    """A retriever artifact at exactly `path`."""
    with writing(path, origin) as out:
        out.metrics.update(metrics)
        retriever.save(out.path)
        out.copy_folder("tokenizer", tokenizer)
    return open_artifact(path)


class IndexMaker:
    """Embeds the blocks with a retriever and builds the index: the one function of every kind of refresh."""

    def __init__(self, order: RefreshRequest, device: str) -> None:
        self.order, self.device = order, pick_device(device)
        self.blocks = open_artifact(order.blocks)
        self.corpus = Corpus(self.blocks)
        self.collator: Collator = packer_of(tokenizer_of(self.blocks))

    def make(self, retriever: Artifact, path: Path, tick: Callable[[int], None] = lambda blocks: None) -> Artifact:
        """The index of `retriever` over the blocks, at exactly `path`; `tick` hears of blocks done.

        Raises QualityError when its recall is below the floor, InputError for vectors that are not finite.
        """
        inputs = {"blocks": self.blocks, "retriever": retriever}
        origin = Origin(
            "index",
            "refresh",
            1,
            dict(self.order.index),
            {name: a.content for name, a in inputs.items()},
            lineage_of(inputs),
        )
        with writing(path, origin) as out:
            model = Retriever.load(retriever.path).to(self.device)
            embed_corpus(
                model, self.collator, self.corpus, out.file("vectors.npy"), journal=out.scratch("ranges") / "done.jsonl",
                dtype=self.order.dtype, precision=self.order.precision, on_progress=tick,
            )  # fmt: skip
            out.metrics.update(build_index(out.path, self.order.options, device=str(self.device)))
        return open_artifact(path)
