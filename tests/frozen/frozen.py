"""Run the frozen pipelines through the command line, and gather what must stay as it is.

Only the entry point of `realmctl`, the outputs of pipelines and the files of artifacts are used here, so this file stays as it is
when files of the package move.

golden = everything(folder)        # what `python -m tests.frozen --write` writes to golden.json
differences(golden, found)         # one line for each thing that is not as it was
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.json"
CORPUS = HERE / "corpus"
TOLERANCE = 1e-6
"""Largest relative difference of a number, on the processor that made the golden file."""
TOLERANCE_ELSEWHERE = 1e-3
"""The same on other processors, for the losses of the first steps. Other numbers are not compared there."""
STEPS_ELSEWHERE = 3
"""The last bits of a sum decide between candidates with nearly tied scores, so later steps may read other blocks there."""
TIMES = re.compile(r"seconds|minutes|per_second|memory|bytes")
"""Names of metrics that no two runs share."""
ANSWERS = 3


class Failed(Exception):
    """A command left with another exit code than 0."""


class _Stdout(io.TextIOWrapper):
    """A stdout that keeps what is printed."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


def realmctl(*arguments: object) -> str:
    """Run a command in this process. Returns what it prints on stdout. Raises Failed."""
    from realmctl.__main__ import main

    given = [str(argument) for argument in arguments]
    out, before = _Stdout(), sys.argv
    sys.argv = ["realmctl", *given]
    try:
        with contextlib.redirect_stdout(out):
            main()
    except SystemExit as left:
        if left.code:
            raise Failed(f"realmctl {' '.join(given)} left with exit code {left.code}") from None
    finally:
        sys.argv = before
    return out.text()


def made(name: str, work: Path, until: str = "", **variables: object) -> dict[str, Any]:
    """Make the outputs of a pipeline in the workspace `work`. Returns {output: what is frozen of it}."""
    named = [f"--var={key}={value}" for key, value in {"corpus": CORPUS, **variables}.items()]
    wanted = ["--until", until] if until else []
    told = realmctl("run", HERE / f"{name}.yaml", "-w", work, "--threads", 1, "--json", "--quiet", *named, *wanted)
    outputs = json.loads(told)["made"]
    return {f"{name}/{output}": _frozen(Path(entry["path"]), entry) for output, entry in sorted(outputs.items())}


def _frozen(path: Path, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The kind of an artifact, its metrics, the loss of each step, and the hashes of its files.

    `files` holds the hashes of what has no weights, `bits` those of vectors and indexes, whose bits depend on the processor.
    Trained weights have none: the losses of the steps tell of them.
    """
    found: dict[str, Any] = {"kind": entry["kind"], "metrics": dict(_steady(entry["metrics"]))}
    files = json.loads((path / "manifest.json").read_text(encoding="utf-8"))["files"]
    if part := {"blocks": "files", "spans": "files", "embeddings": "bits", "index": "bits"}.get(entry["kind"]):
        found[part] = {name: file["sha256"] for name, file in sorted(files.items())}
    steps = path / "metrics.jsonl"
    if steps.is_file():
        lines = [json.loads(line) for line in steps.read_text(encoding="utf-8").splitlines()]
        found["losses"] = [line["loss"] for line in lines if "loss" in line]
    return found


def _steady(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Those metrics that are equal in two runs."""
    for name, value in sorted(metrics.items()):
        if not TIMES.search(name):
            yield name, dict(_steady(value)) if isinstance(value, dict) else value


def languages(folder: Path) -> dict[str, Any]:
    """Blocks and spans of three dumps and of plain documents."""
    return made("languages", folder / "languages")


def mission(folder: Path, until: str = "") -> dict[str, Any]:
    """The mission's chain and its objectives."""
    return made("mission", folder / "mission", until)


def beside(folder: Path) -> dict[str, Any]:
    """What stands beside the mission. It reads what `mission` made."""
    from tests.fixtures.language_models import make_gpt2, make_t5

    gpt2, t5 = make_gpt2(folder / "gpt2", dropout=0.0), make_t5(folder / "t5", dropout=0.0)
    return made("beside", folder / "beside", mission=folder / "mission", gpt2=gpt2, t5=t5)


def answers(folder: Path, most: int | None = None) -> dict[str, Any]:
    """What `ask` answers to the fifty development questions, and what `search` finds for ten of them with either index.

    most: How many of the questions are asked, and only of the exact index. By default all, of both.
    """
    work = folder / "mission"
    questions = [json.loads(line)["question"] for line in (CORPUS / "world/dev.jsonl").read_text().splitlines()][:most]
    options = ("-w", work, "--json", "--quiet")
    asked = {
        question: json.loads(realmctl("ask", question, "--top", ANSWERS, "--threads", 1, *options))["answers"]
        for question in questions
    }
    indexes = ("mission/exact", "beside/hnsw") if most is None else ("mission/exact",)
    hits = {
        f"{Path(index).name}: {question}": json.loads(
            realmctl("search", question, "--index", work.parent / index, "--top", ANSWERS, "--threads", 1, *options)
        )["results"][0]["hits"]
        for index in indexes
        for question in questions[:10]
    }
    return {"ask": asked, "search": hits}


def commands() -> dict[str, Any]:
    """The commands that `--help` lists, and the stages of pipeline files where the room is there that has their schema."""
    listed = re.findall(r"^│ ([a-z][a-z0-9-]+) {2,}\S", realmctl("--help"), re.MULTILINE)
    stages = stages_of(json.loads(realmctl("schema", "--json"))) if "schema" in listed else []
    return {"commands": sorted(listed), "stages": stages}


def stages_of(schema: Mapping[str, Any]) -> list[str]:
    """The names of the stages in the schema of pipeline files: the properties of `defaults`."""
    return sorted(schema["properties"]["defaults"]["properties"])


def processor() -> str:
    """The name of this processor, and the versions whose kernels computed the numbers."""
    import torch

    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{name}, torch {torch.__version__}"


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "commands": lambda folder: commands(),
    "languages": languages,
    "mission": mission,
    "beside": beside,
    "answers": answers,
}
"""The parts of the golden file, in the order in which they are made."""


def everything(folder: Path) -> dict[str, Any]:
    """All parts, made in `folder`."""
    return {"processor": processor(), **{name: part(folder) for name, part in PARTS.items()}}


def differences(golden: Any, found: Any, here: bool, where: str = "") -> list[str]:
    """Return one line for each value of `found` that is not as in `golden`.

    Args:
        golden: A value of the golden file.
        found: The same as it is now.
        here: Whether the golden file was made on this processor. If not, only what no processor changes is compared, and the losses
            of the first steps.
        where: The names that lead to the value.
    """
    name = where.rpartition(": ")[2]
    if not here and name in ("bits", "metrics", "answers"):
        return []
    if not here and name == "losses":
        golden, found = golden[:STEPS_ELSEWHERE], found[:STEPS_ELSEWHERE]
    if isinstance(golden, dict) and isinstance(found, dict):
        odd = [
            f"{where}: {key} is {'gone' if key in golden else 'new'}" for key in sorted(golden.keys() ^ found.keys())
        ]
        return odd + [
            line
            for key in sorted(golden.keys() & found.keys())
            for line in differences(golden[key], found[key], here, f"{where}: {key}" if where else key)
        ]
    if isinstance(golden, list) and isinstance(found, list) and all(isinstance(each, str) for each in golden + found):
        golden, found = dict.fromkeys(golden, ""), dict.fromkeys(found, "")
        return differences(golden, found, here, where)
    if isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        pairs = enumerate(zip(golden, found, strict=True))
        return [line for number, (one, other) in pairs for line in differences(one, other, here, f"{where} [{number}]")]
    if isinstance(golden, float) and isinstance(found, int | float):
        near = math.isclose(golden, found, rel_tol=TOLERANCE if here else TOLERANCE_ELSEWHERE, abs_tol=1e-9)
        return [] if near else [f"{where}: {golden!r} became {found!r}"]
    return [] if golden == found else [f"{where}: {golden!r} became {found!r}"]
