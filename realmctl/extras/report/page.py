"""Render the report: one HTML file. Its content security policy forbids all requests."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from realmctl.amounts import duration_text, number_text
from realmctl.artifacts import Artifact, verify
from realmctl.extras.report import amounts
from realmctl.extras.report.charts import CHARTS
from realmctl.extras.report.comparing import Comparison
from realmctl.extras.report.curves import TrainingRun, read_run
from realmctl.extras.report.evidence import QuestionEvidence, question_evidence
from realmctl.extras.report.funnel import Funnel, funnel_of
from realmctl.extras.report.outcomes import read_outcomes
from realmctl.extras.report.plots import draw_chart
from realmctl.extras.report.sources import blocks_of, compared, is_training, reported
from realmctl.version import __version__

TITLES = {"model": "Pre-training", "qa-model": "Fine-tuning", "retriever": "Retriever warm start", "encoder": "Encoder"}


@dataclass(frozen=True)
class DrawnChart:
    """A chart as SVG, with its title and a sentence about it."""

    title: str
    about: str
    svg: Markup


@dataclass(frozen=True)
class Training:
    """All training runs of one kind, drawn in the same charts. `missing`: titles of charts without any curve."""

    title: str
    runs: list[TrainingRun]
    plots: list[DrawnChart]
    missing: list[str]


@dataclass(frozen=True)
class Evaluation:
    """One scores artifact."""

    scores: Artifact
    funnel: Funnel
    shown: list[QuestionEvidence]


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written: its file, the artifacts in it, its questions, and how many of them it shows."""

    report: str
    bytes: int
    artifacts: list[str]
    questions: int
    shown: int


def write(paths: Sequence[Path], out: Path, *, blocks: Path | None, workspace: Path, questions: int) -> WrittenReport:
    """Write the report of these artifacts (see `sources.reported`) to `out`, atomically.

    Raises InputError or MismatchError for artifacts that cannot be reported.
    """
    artifacts = reported(paths)
    for scores in _of_kind("scores", artifacts):
        verify(scores)
    evaluations = [_evaluation(one, blocks, workspace, questions) for one in _of_kind("scores", artifacts)]
    trainings = [_training(kind, artifacts) for kind in TITLES if _of(kind, artifacts)]
    text = _rendered(artifacts, trainings, evaluations, compared(paths, workspace))
    _write_atomically(out, text.encode("utf-8", "replace"))
    return WrittenReport(
        report=str(out),
        bytes=out.stat().st_size,
        artifacts=[str(artifact.path) for artifact in artifacts],
        questions=sum(each.funnel.questions for each in evaluations),
        shown=sum(len(each.shown) for each in evaluations),
    )


def _of_kind(kind: str, artifacts: Sequence[Artifact]) -> list[Artifact]:
    return [artifact for artifact in artifacts if artifact.kind == kind]


def _of(kind: str, artifacts: Sequence[Artifact]) -> list[Artifact]:
    return [artifact for artifact in artifacts if artifact.kind == kind and is_training(artifact)]


def _training(kind: str, artifacts: Sequence[Artifact]) -> Training:
    runs = [read_run(artifact) for artifact in _of(kind, artifacts)]
    drawings = [(chart, draw_chart(chart, runs, f"{kind}-{place}")) for place, chart in enumerate(CHARTS[kind])]
    plots = [DrawnChart(chart.title, chart.about, Markup(svg)) for chart, svg in drawings if svg]
    return Training(TITLES[kind], runs, plots, [chart.title for chart, svg in drawings if not svg])


def _evaluation(scores: Artifact, blocks: Path | None, workspace: Path, questions: int) -> Evaluation:
    found = read_outcomes(scores, blocks_of(scores, blocks, workspace))
    funnel = funnel_of(found)
    return Evaluation(scores, funnel, question_evidence(scores, found, funnel.depths, questions))


def _rendered(
    artifacts: Sequence[Artifact],
    trainings: Sequence[Training],
    evaluations: Sequence[Evaluation],
    comparisons: Sequence[Comparison],
) -> str:
    style, script = (_page_file(name) for name in ("report.css", "report.js"))
    environment = Environment(
        loader=PackageLoader("realmctl.extras.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": amounts.percent, "plain": number_text}
    environment.filters["duration"] = duration_text
    return environment.get_template("report.html").render(
        artifacts=artifacts,
        trainings=trainings,
        evaluations=evaluations,
        comparisons=comparisons,
        version=__version__,
        amount=amounts.amount,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(script),
    )


def _page_file(name: str) -> str:
    return resources.files("realmctl.extras.report").joinpath("page", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Return a content security policy: nothing is loaded, and only this script runs."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _write_atomically(out: Path, content: bytes) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f"{out.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
