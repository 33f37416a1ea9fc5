"""The commands beside the stages, written by hand: look at artifacts, ask, probe, score, report, exchange."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from realmctl import catalogue
from realmctl.commands import Json, Workspace, emit, path
from realmctl.errors import require_package
from realmctl.sources import localise

RegexAnswers = Annotated[
    bool | None,
    typer.Option(
        "--regex-answers/--no-regex-answers", help="Answers are regular expressions; default as the format says."
    ),
]
AnswerField = Annotated[str | None, typer.Option(help="Field that holds the answers, such as EfficientQA's.")]
Series = typer.Argument(parser=path, help="A series (its newest version) or one version.")


def _ls(
    folder: Annotated[
        Path | None,
        typer.Argument(parser=path, help="Folder of series, or a series. Default: the workspace."),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """List series and versions: size, age, what made them."""
    emit({"artifacts": catalogue.listing(folder or workspace)}, json, catalogue.listing_text)


def _show(artifact: Annotated[Path, Series], workspace: Workspace = Path("artifacts"), json: Json = False) -> None:
    """Print an artifact's manifest, and what it was made from as a tree."""
    emit(catalogue.shown(artifact, workspace), json, catalogue.shown_text)


def _verify(artifacts: Annotated[list[Path], Series], json: Json = False) -> None:
    """Recompute every hash of an artifact, parts included."""
    emit({"verified": [catalogue.verified(each) for each in artifacts]}, json, catalogue.verified_text)


def _refresh(
    run: Annotated[Path, typer.Argument(parser=path, help="Folder of a running pretrain: vN.partial/live.")],
    device: Annotated[str, typer.Option(help="Device to embed on.")] = "auto",
    json: Json = False,
) -> None:
    """Keep the index of a running pretrain fresh.

    Pretrain starts this itself; by hand it serves another GPU or host.
    """
    from realmctl.train.refresher import serve

    serve(run, device)
    emit({"run": str(run)}, json, lambda value: f"{value['run']} is over")


def _ask(
    question: Annotated[str, typer.Argument(help="A question.")],
    qa_model: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/qa-model.")] = None,
    blocks: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/blocks.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Answers to print.")] = 3,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Answer a question, with the evidence it was read from and p(z|x)."""
    from realmctl.retrieval.asking import answers_text, ask

    answers = ask(question, qa_model or workspace / "qa-model", blocks or workspace / "blocks", top)
    emit(answers, json, answers_text)


def _probe(
    sentence: Annotated[str, typer.Argument(help="A sentence with one or more [MASK].")],
    model: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/model.")] = None,
    blocks: Annotated[Path | None, typer.Option(parser=path, help="Default: <workspace>/blocks.")] = None,
    candidates: Annotated[int, typer.Option(min=2, help="Candidates, the null document included.")] = 8,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Fill the blanks of a sentence, with and without retrieval, candidate by candidate (REALM's Table 3)."""
    from realmctl.retrieval.asking import probe, probe_text

    fills = probe(sentence, model or workspace / "model", blocks or workspace / "blocks", candidates)
    emit(fills, json, probe_text)


def _score(
    predictions: Annotated[
        Path, typer.Argument(parser=path, help="JSON lines of question and prediction, or a scores artifact.")
    ],
    references: Annotated[Path, typer.Argument(parser=path, help="Questions with answers, as eval-em reads them.")],
    scorer: Annotated[
        Literal["auto", "orqa", "squad", "dpr", "regex-match", "regex-search"],
        typer.Option(help="What `em` means; auto is orqa, and regex-match where answers are regular expressions."),
    ] = "auto",
    all_scorers: Annotated[
        bool, typer.Option("--all-scorers", help="List the questions that the scorers disagree on.")
    ] = False,
    regex_answers: RegexAnswers = None,
    answer_field: AnswerField = None,
    json: Json = False,
) -> None:
    """Score a file of predictions: exact match under every scorer that suits the answers, no model needed."""
    from realmctl.text import scoring

    with _on_disk(predictions, references) as (predicted, asked):
        scores, judged = scoring.score(
            catalogue.predictions_of(predicted), asked, scorer=scorer, is_regex=regex_answers, answer_field=answer_field
        )
    if all_scorers:
        scores["disagreements"] = [each.record() for each in judged if each.disagrees]
    emit(scores, json, scoring.scores_text)


def _split(
    questions: Annotated[list[Path], typer.Argument(parser=path, help="Question files, taken as one set.")],
    train: Annotated[Path, typer.Option(parser=path, help="JSON lines to write: training questions.")],
    dev: Annotated[Path, typer.Option(parser=path, help="JSON lines to write: dev questions.")],
    max_answer_tokens: Annotated[
        int | None, typer.Option(min=1, help="Drop longer answers, and questions left without one; NQ-open: 5.")
    ] = None,
    regex_answers: RegexAnswers = None,
    answer_field: AnswerField = None,
    json: Json = False,
) -> None:
    """Split questions into training and dev as ORQA does, by FarmHash: a tenth is dev."""
    from realmctl.text import splits

    with _on_disk(*questions) as sources:
        counts = splits.split(
            sources, train, dev, max_answer_tokens=max_answer_tokens, is_regex=regex_answers, answer_field=answer_field
        )
    emit(counts, json, splits.split_text)


@contextmanager
def _on_disk(*paths: Path) -> Iterator[list[Path]]:
    """The paths of files, with standard input (`-`) and pipes as files of their own."""
    with tempfile.TemporaryDirectory() as spool:
        yield [localise(each, (), False, "input", Path(spool)) for each in paths]


def _import(
    source: Annotated[str, typer.Argument(help="Folder or hub id of a transformers REALM checkpoint.")],
    tokenizer: Annotated[str | None, typer.Option(help="Folder or hub id of its tokenizer, if it has none.")] = None,
    titles: Annotated[
        Path | None, typer.Option(parser=path, help="open QA: text file, the title of a block a line.")
    ] = None,
    block_records: Annotated[
        Path | None, typer.Option(parser=path, help="open QA: block_records.npy, if it has none.")
    ] = None,
    retriever: Annotated[
        Path | None, typer.Option(parser=path, help="open QA: the imported pre-trained embedder, which made its index.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes; 0 = all cores.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", parser=path, help="Folder of series to write to. Default: the workspace."),
    ] = None,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Make artifacts of a published REALM checkpoint.

    An embedder or scorer becomes a retriever, an encoder an encoder, a reader a span-reader, and an open-QA
    checkpoint blocks and a qa-model. Nothing of a checkpoint is ever executed.
    """
    from realmctl.exchange.importing import Extras, import_checkpoint

    extras = Extras(tokenizer, block_records, titles, retriever)
    artifacts = import_checkpoint(source, out or workspace, extras, workers)
    made = {kind: catalogue.summary(artifact) for kind, artifact in artifacts.items()}
    emit({"made": made}, json, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))


def _export(
    artifact: Annotated[
        Path, typer.Argument(parser=path, help="A retriever, encoder or reader, or a model for its retriever.")
    ],
    folder: Annotated[Path, typer.Argument(parser=path, help="New folder to write.")],
    side: Annotated[
        Literal["query", "block"] | None, typer.Option(help="Which tower of a retriever that has two.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a folder that transformers' AutoModel loads; a retriever's loads in sentence-transformers too."""
    from realmctl.exchange.hub_export import export

    emit(export(artifact, folder, side), json, lambda value: str(value["path"]))


def _report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=path, help="Models, scores, other training artifacts, or folders of them. Default: the workspace."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", parser=path, help="HTML file to write.")] = Path("report.html"),
    blocks: Annotated[
        Path | None,
        typer.Option(parser=path, help="Blocks to look for answers in. Default: those of the scores, if at hand."),
    ] = None,
    questions: Annotated[int, typer.Option(min=0, help="Questions to show of each scores, at most.")] = 200,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Write one HTML file, to be opened offline: curves over steps, where questions fail, and the evidence of each answer."""
    for package in ("jinja2", "matplotlib"):
        require_package(package, "report", "realmctl report")
    from realmctl.report import page

    written = page.write(runs or [workspace], out, blocks=blocks, workspace=workspace, questions=questions)
    emit(written, json, page.written_text)


BESIDE = (_ls, _show, _verify, _refresh, _ask, _probe, _score, _split, _report, _import, _export)
