"""Runs of the ablation without any training: artifacts with chosen numbers, where examples/ablation would look for them.

ablation = load("claims")                         # a module of examples/ablation
write_scores(folder, seed=0, arm="realm", em=0.7)
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from realmctl.artifact import Origin, writing

PROGRAM = Path(__file__).parents[1] / "examples" / "ablation"
EM = {
    "realm": 0.75, "orqa": 0.55, "realm-joint": 0.8, "orqa-joint": 0.7, "orqa-short": 0.4, "realm-retriever": 0.6, "realm-reader": 0.5, "random-uniform": 0.6,
    "random-span": 0.65, "refresh-10x": 0.7, "refresh-30x": 0.6, "refresh-never": 0.45, "off-corpus": 0.73, "no-null": 0.72,
    "same-corpus": 0.7, "same-corpus-own": 0.69, "bm25": 0.5, "closed-book": 0.02,
}  # fmt: skip
PERIODS = {"realm": 10, "refresh-10x": 100, "refresh-30x": 300}
STEPS = 400


def load(name: str) -> Any:
    """A module of the program, which is a folder of scripts and no package."""
    if str(PROGRAM) not in sys.path:
        sys.path.insert(0, str(PROGRAM))
    return import_module(name)


def artifacts_of(folder: Path, seed: int) -> Path:
    """Where the outputs of a seed are."""
    return folder / f"seed-{seed}" / "artifacts"


def write_output(
    folder: Path, seed: int, name: str, metrics: dict[str, Any], log: str | None = None, **settings: Any
) -> None:
    """One committed version of one output. `log` is its metrics.jsonl."""
    questions = settings.pop("questions", f"questions of seed {seed}")
    origin = Origin(name, "made-up", 1, settings, {"questions": questions})
    with writing(artifacts_of(folder, seed) / name / "v1", origin) as out:
        out.metrics.update(metrics)
        if log is not None:
            out.file("metrics.jsonl").write_text(log, encoding="utf-8")


def write_scores(folder: Path, seed: int, arm: str, em: float, **more: Any) -> None:
    """Exact match, and recalls unless the arm has none."""
    recalls = {} if arm == "closed-book" else {f"recall@{k}": em * (0.5 + k / 200) for k in (1, 5, 20, 100)}
    write_output(folder, seed, f"{arm}-scores", {"em": em, **recalls, "questions": 200}, **more)


def write_whole_run(folder: Path, seed: int) -> None:
    """Every output that the page reads, with an effect wherever the paper has one."""
    for arm, em in EM.items():
        write_scores(folder, seed, arm, em + 0.01 * seed * (1 if arm == "realm" else -1))
    for name in {"start", *EM} - {"closed-book"}:
        write_output(folder, seed, f"{name}-zero-shot", {f"recall@{k}": 0.1 + k / 200 for k in (1, 5, 20, 100)})
    write_output(folder, seed, "closed-book-seen-scores", {"em": 0.3}, questions="others")
    for name in ("realm", "random-uniform", "refresh-never", "off-corpus"):
        write_output(
            folder, seed, f"{name}-utility", {"top_1_utility": 1.5, "retrieval_utility": 1.0, "null_share": 0.1}
        )
    start = {"top_1_utility": 0.1 + seed / 100, "retrieval_utility": 0.0, "null_share": 0.2}
    write_output(folder, seed, "start-utility", start)
    write_output(folder, seed, "off-corpus-strangers", {**start, "null_share": 0.6})
    for arm in ("realm", "random-span", "random-uniform", "refresh-10x", "refresh-30x", "refresh-never"):
        refresh = "never" if arm == "refresh-never" else "inline"
        period = PERIODS.get(arm, 10)
        log = training_log(seed, STEPS if refresh == "never" else period)
        write_output(folder, seed, arm, {}, log, refresh=refresh, refresh_every=period)


def training_log(seed: int, period: int) -> str:
    """Rising utility, a sawtooth of an index age, a probe at each refresh, and a record that is no step."""
    lines: list[dict[str, Any]] = [{"alarm": "made up"}]
    for step in range(STEPS):
        line = {"step": step + 1, "loss": 5.0, "top_1_utility": (step + seed) / STEPS, "index_age_steps": step % period}
        lines.append({**line, **({"probe_recall_5": step / STEPS} if step % period == 0 else {})})
    return "".join(json.dumps(line) + "\n" for line in lines)
