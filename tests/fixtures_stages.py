"""Stages that need no model and no corpus: what the tests of artifacts, series, pipelines and commands make."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from realmctl.artifact import Artifact, Writer, writing
from realmctl.errors import ConfigError
from realmctl.stage import Stage, knob, reads, setting, source


class Plain(Stage):
    """Writes its text into three files.

    [CLS] and [lower] are no markup.
    """

    makes = "plain"
    text: str = setting("Text to write: [MASK] or [mask].", default="hello")
    tags: tuple[str, ...] = setting("Tags.", default=())
    rate: float = setting("A rate.", default=0.5)
    kind_of: Literal["short", "long"] = setting("A choice.", default="short")
    limit: int | None = setting("A limit, if any.", default=None)
    strict: bool = setting("A truth value.", default=True)
    maybe: bool | None = setting("A truth value, or none.", default=None)
    corpus: tuple[Path, ...] = source("Files.", default=())
    vocabulary: str = source("A folder or train:N.", default="train:10", literals=("train:",), hub=True)
    workers: int = knob("Only speed.", default=1)

    def check(self) -> None:
        if self.text == "forbidden":
            raise ConfigError("--text forbidden: that word is not written. Use another.")

    def run(self, out: Writer) -> Mapping[str, Any]:
        out.file("text.txt").write_text(self.text)
        out.file("deep/er/copy.bin").write_bytes(self.text.encode() * 3)
        out.file("corpus.txt").write_bytes(b"".join(path.read_bytes() for path in self.corpus))
        return {"length": len(self.text)}


class Child(Stage):
    """Reads a plain artifact."""

    makes = "child"
    plain: Artifact = reads("plain", help="What it descends from.")
    other: Artifact | None = reads("child", help="Another one.", named=True)

    def run(self, out: Writer) -> Mapping[str, Any]:
        out.link("text.txt", self.plain.file("text.txt"))
        return {}


class Model(Stage):
    """Holds a plain artifact as a part, and adopts another."""

    makes = "model"
    child: Artifact = reads("child", help="Part to adopt.")
    text: str = setting("Text of the part.", default="part")

    def run(self, out: Writer) -> Mapping[str, Any]:
        with writing(out.path / "plain", dataclasses.replace(out.origin, kind="plain")) as part:
            part.file("text.txt").write_text(self.text)
            part.metrics["length"] = len(self.text)
        out.adopt("child", self.child)
        out.file("own.txt").write_text("own")
        return {}


class Steps(Stage):
    """Takes resumable steps, and stops where it is told."""

    makes = "steps"
    resumable = True
    steps: int = setting("Steps.", default=4)
    stop_before: int = knob("Step to fail at; -1 = none.", default=-1)

    def run(self, out: Writer) -> Mapping[str, Any]:
        done = out.scratch("done")
        taken = 0
        for step in range(self.steps):
            if step == self.stop_before:
                raise RuntimeError("stopped")
            if not (done / str(step)).exists():
                (done / str(step)).write_text("done")
                taken += 1
        out.file("steps.txt").write_text(str(self.steps))
        return {"taken": taken}


STAGES: dict[str, type[Stage]] = {"plain": Plain, "child": Child, "model": Model, "steps": Steps}
