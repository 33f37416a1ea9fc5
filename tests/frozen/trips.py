"""Count the modules and functions of realmctl that a task enters: `python -m tests.frozen.trips`.

How many of them one must know to follow a task is a measure of how far an idea is spread. Each task runs under `sys.setprofile`. Counted
are functions below `realmctl/` and `stages/`, on any thread, from the call of a stage's `run` (of a command, of one step) to its end.
Imports do not count.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

from tests.frozen.frozen import mission, realmctl

ROOT = Path(__file__).parents[2]
OWN = tuple(f"{ROOT / name}/" for name in ("realmctl", "stages"))
NO_FUNCTIONS = ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
CORPUS_OF_THREE = "\n".join(
    f'{{"id": "{number}", "title": "Town {number}", "text": "Ada met Ben in Velford in 184{number}. They wrote to Cora."}}'
    for number in range(3)
)


class Trip:
    """What is entered from the call of `start` to its end.

    start: Qualified name of a function, such as `Chunk.run`.
    """

    def __init__(self, start: str) -> None:
        self.start = start
        self.outermost: FrameType | None = None
        self.entered: set[CodeType] = set()

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(OWN):
            return
        if event == "call" and self.outermost is None and code.co_qualname == self.start:
            self.outermost = frame
        if event == "call" and self.outermost is not None and code.co_name not in NO_FUNCTIONS:
            self.entered.add(code)
        if event == "return" and frame is self.outermost:
            self.outermost = None

    def counts(self, task: Callable[[], object]) -> tuple[int, int]:
        """Run `task`, and return the numbers of modules and of functions. Raises LookupError if `start` was never called."""
        sys.setprofile(self.profile)
        threading.setprofile(self.profile)
        try:
            task()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        if not self.entered:
            raise LookupError(f"no function {self.start} was called. Name the function that a trip begins with anew.")
        return len({code.co_filename for code in self.entered}), len(self.entered)


def trips(folder: Path) -> dict[str, tuple[int, int]]:
    """The modules and functions of each task, in the order of a chain that is made in `folder`."""
    mission(folder, until="model")
    work, corpus = folder / "mission", folder / "three.jsonl"
    corpus.write_text(CORPUS_OF_THREE, encoding="utf-8")
    out = folder / "out"
    quiet = ("-w", work, "--quiet")
    parts = ("--blocks", work / "blocks", "--retriever", work / "retriever")
    chunk = ("chunk", corpus, "--tokenizer", work / "blocks/v1/tokenizer", "--workers", 1, "--out", out / "blocks")
    embed = ("embed", *parts, "--out", out / "embeddings", "--precision", "fp32", "--threads", 1)
    search = ("search", "Who was it?", *parts, "--index", work / "exact", "--threads", 1)
    pretrain = ("pretrain", *parts, "--index", work / "exact", "--spans", work / "spans", "--encoder", work / "encoder")
    settings = ("--steps", 1, "--batch-size", 1, "--candidates", 2, "--refresh", "inline", "--out", out / "model")
    return {
        "chunk": Trip("Chunk.run").counts(lambda: realmctl(*chunk, *quiet)),
        "embed": Trip("Embed.run").counts(lambda: realmctl(*embed, *quiet)),
        "search": Trip("Search.run").counts(lambda: realmctl(*search, *quiet)),
        "pretrain": Trip("Pretrain.run").counts(lambda: realmctl(*pretrain, *settings, "--threads", 1, *quiet)),
        "a step of pretrain": Trip("_Run._take").counts(
            lambda: realmctl(*pretrain, *settings, "--seed", 1, "--threads", 1, *quiet)
        ),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for name, (modules, functions) in trips(Path(made)).items():
            print(f"{name}: {modules} modules, {functions} functions")
