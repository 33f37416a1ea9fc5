"""`realmctl adapt`: adapt a retriever to documents without labels, and make them searchable."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, computes, path
from realmctl.pipeline.fields import MOST

TRAINING = 0.6
"""Share of the minutes for training. The rest is for blocks, measurements and vectors."""


@computes
def adapt(
    documents: Annotated[
        Path, typer.Argument(parser=path, help="Folder or file of documents, in any format that `chunk` reads.")
    ],
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Folder or hub id of a sentence encoder. Default: all-MiniLM-L6-v2, from the extra `encoder` or from the hub."
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, max=1e6, help="Minutes of which three fifths are for training.")
    ] = 30,
    max_wordpieces: Annotated[
        int, typer.Option(min=1, max=MOST, help="Longest block in wordpieces, with its title and special tokens.")
    ] = 128,
    sentences: Annotated[
        int,
        typer.Option(min=2, max=MOST, help="Sentences that are cut out of their blocks, to measure without labels."),
    ] = 400,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Adapt a sentence encoder to documents without labels, and make them searchable. The encoder is kept where no gain is shown.

    The same as `import`, `chunk`, `ict-init`, `eval-cloze`, `embed` and `build-index`. It ends by saying what was gained and how to
    search. After an interruption the same command goes on; a second run finds everything made.
    """
    from realmctl.shortcuts.shipped import default_encoder, run_shipped

    variables = {
        "documents": str(documents),
        "wordpieces": str(max_wordpieces),
        "minutes": str(TRAINING * minutes),
        "sentences": str(sentences),
        "method": "hybrid" if importlib.util.find_spec("bm25s") else "dense",
    }
    made = run_shipped("adapt", workspace, encoder or default_encoder(), variables)
    trained, measured = made["retriever"].metrics, made["cloze-recall"].metrics
    dense = measured.get("dense", measured)
    found = {
        "blocks": made["blocks"].metrics["blocks"],
        "steps": trained["steps"],
        "kept_step": trained["kept_step"],
        "sentences": measured["sentences"],
        "recall@5_before": measured["baseline"]["cloze_recall@5"],
        "recall@5_after": dense["cloze_recall@5"],
        **{name: measured[name] for name in ("gain", "gain_low", "gain_high")},
        "bm25_weight": measured["bm25_weight"] if measured.get("gain_over_dense_low", 0) > 0 else 0.0,
        "workspace": str(workspace),
        "made": {name: str(artifact.path) for name, artifact in made.items()},
    }
    print_result(found, json, _text)


def _text(found: Mapping[str, Any]) -> str:
    """Say in plain words what was gained, which retriever to use, and how to search."""
    share = {when: f"{found[f'recall@5_{when}']:.1%}" for when in ("before", "after")}
    if not found["kept_step"]:
        gained = [
            f"No gain is shown in {found['steps']} steps of training, so the encoder is kept as it was: {share['before']} of "
            f"{found['sentences']} sentences find their block among the first five."
        ]
    else:
        gained = [
            f"After {found['kept_step']} steps of training {share['after']} of {found['sentences']} other sentences find their block "
            f"among the first five; before it was {share['before']}. The gain in the reciprocal rank is {found['gain']:+.3f}, 95 % interval "
            f"{found['gain_low']:+.3f} to {found['gain_high']:+.3f}"
            + ("." if found["gain_low"] > 0 else ": on these sentences no gain is shown, so the start may be as good."),
            "These sentences are in the documents' own words. Where people ask in words of their own, compare both on some of their "
            "questions (realmctl rank, realmctl eval-run).",
        ]
    fused = f" --method hybrid --bm25-weight {found['bm25_weight']:g}" if found["bm25_weight"] else ""
    helps = "BM25 beside it finds more." if fused else "BM25 beside it is not shown to find more."
    return "\n".join(
        [
            *gained,
            f"Use {found['made']['retriever']}; its index is {found['made']['index']}. {helps}",
            f'Now: realmctl search "your words"{fused} --workspace {shlex.quote(found["workspace"])}',
        ]
    )
