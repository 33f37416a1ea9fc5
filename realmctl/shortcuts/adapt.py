"""Documents, an encoder and minutes become an adapted retriever and a search, with words on what was gained."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from realmctl import log
from realmctl.artifacts import Artifact
from realmctl.artifacts.hashing import read_sealed, write_sealed
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.settings import language_of
from realmctl.errors import ConfigError, InputError
from realmctl.pipeline.discovery import own_stages
from realmctl.shortcuts.shipped import default_encoder, left_out, left_out_text, run_shipped, search_command
from realmctl.training.budget import FEWEST_STEPS, TooFewSteps

LEAST = 0.1
"""Share of the minutes that training has at least, however long the rest takes."""
SLACK = 1.1
"""Factor of the seconds that embedding is expected to take."""
FEWEST_SENTENCES = 50
"""With fewer sentences an interval of their gain says nothing."""
MEASURED = 2000
"""Blocks that the last measurement embeds, twice: with the encoder as it was and as it is (adapt.yaml)."""


class TooFewMinutes(ConfigError):
    """The minutes leave time for so few steps that no gain could be shown. needed: minutes that are enough."""

    def __init__(self, minutes: float, steps: int, needed: int) -> None:
        super().__init__(
            f"--minutes {minutes:g} leaves time for {steps} steps of training, and a gain can be shown by {FEWEST_STEPS} or more. "
            f"Give it --minutes {needed} on this machine. `realmctl index-docs` makes the documents searchable without training."
        )
        self.steps, self.needed = steps, needed


def adapt(
    documents: Path,
    encoder: str | None,
    workspace: Path,
    read: Mapping[str, str],
    *,
    minutes: float,
    sentences: int,
    held_out: Callable[[Artifact], Artifact | None] = lambda blocks: None,
) -> dict[str, Any]:
    """Make blocks, an adapted retriever and its index, as the options of `realmctl adapt` say. Returns what was gained, and how to search.

    read: the variables of `adapt.yaml` that say how documents are read. held_out: returns questions of documents of the blocks, which training leaves out and is measured by, in place of titles; None for none.
    """
    begin, start = time.monotonic(), encoder or default_encoder([documents], read["language"])
    variables = {**read, "sentences": str(sentences)}
    with log.one_bar("adapt"):
        first = run_shipped("adapt", workspace, start, variables, only=("blocks",))
    counts = first["blocks"].metrics
    log.say(
        f"adapt: {counts['blocks']:,} blocks of {counts['documents']:,} documents, language {language_of(first['blocks'])}"
        + left_out_text(first["blocks"])
    )
    require_enough(first["blocks"], sentences)
    questions = held_out(first["blocks"])
    variables |= {"titles": "0", "held_out": str(questions.path)} if questions else {"titles": str(sentences)}
    training = minutes_of_training(minutes, begin, first, workspace)
    try:
        with log.one_bar("adapt"):
            made = run_shipped("adapt", workspace, start, {**variables, "minutes": f"{training:g}"})
    except TooFewSteps as error:
        needed = math.ceil(max(minutes, 0) - training + error.minutes)
        raise TooFewMinutes(minutes, error.steps, needed) from None
    trained, measured = made["retriever"].metrics, made["cloze-recall"].metrics
    found = {
        "blocks": counts["blocks"],
        "left_out": left_out(first["blocks"]),
        "minutes": minutes,
        "steps": trained["steps"],
        "kept_step": trained["kept_step"],
        "sentences": measured["sentences"],
        "recall@5_before": measured["start"]["cloze_recall@5"],
        "recall@5_after": measured["cloze_recall@5"],
        **{name: measured[name] for name in ("gain", "gain_low", "gain_high")},
        **{name: value for name, value in trained.items() if name.startswith(("last_", "question_"))},
        **({"held_out_questions": questions.metrics["queries"]} if questions else {}),
        "workspace": str(workspace),
        "made": {name: str(artifact.path) for name, artifact in made.items()},
    }
    found["search"] = search_command(made["index"], workspace)
    return found


def require_enough(blocks: Artifact, sentences: int) -> None:
    """Check that the blocks have sentences enough to say whether training gained. Raises InputError."""
    fewest = min(FEWEST_SENTENCES, sentences)
    corpus = Corpus(blocks)
    found = len(np.unique(corpus.uid[np.diff(corpus.sentence_offsets) > 1]))
    if found < fewest:
        raise InputError(
            f"{blocks} has {found} different blocks of two sentences or more. Training on so few could not be measured: {fewest} are needed. "
            "`realmctl index-docs` makes these documents searchable with the encoder as it is."
        )


def minutes_of_training(minutes: float, begin: float, made: Mapping[str, Artifact], workspace: Path) -> float:
    """Return what is left for training of the minutes since `begin`: some blocks are embedded, to know how long all take.

    The number is kept in the workspace with what it holds for, so that a second run has the same recipe.
    """
    path = workspace / "adapt.json"
    key = {"minutes": minutes, **{name: made[name].content for name in ("blocks", "retriever")}}
    with contextlib.suppress(OSError, ValueError):
        if (kept := read_sealed(path)) and all(kept.get(name) == value for name, value in key.items()):
            return float(kept["training"])
    inputs: dict[str, Any] = {name: made[name] for name in ("blocks", "retriever")}
    seconds = own_stages()["embed"](**inputs).trial().seconds
    blocks = made["blocks"].metrics["blocks"]
    seconds *= SLACK * (1 + 2 * min(MEASURED, blocks) / max(1, blocks))
    training: float = round(max(LEAST * minutes, minutes - (time.monotonic() - begin + seconds) / 60), 3)
    total = (time.monotonic() - begin + seconds) / 60 + training
    log.say(
        f"adapt: about {training:.2g} minutes of training, and {seconds / 60:.2g} for vectors and the last measurement"
        + (
            f": {total:.2g} in all, since training has a tenth of --minutes {minutes:g} at least"
            if total > 1.05 * minutes
            else ""
        )
    )
    write_sealed(path, {**key, "training": training})
    return training


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def _change(found: Mapping[str, Any], what: str) -> str:
    """The change by the last step of training, with its 95 % interval."""
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*(found[f"last_{what}_gain{end}"] for end in ("", "_low", "_high")))


def text_of(found: Mapping[str, Any]) -> str:
    """Say in plain words what was gained, which retriever to use, and how to search."""
    share = {when: f"{found[f'recall@5_{when}']:.1%}" for when in ("before", "after")}
    if not found["kept_step"]:
        gained = [
            f"No gain is shown in {_steps(found['steps'])} of training, so the encoder is kept as it was: {share['before']} of "
            f"{found['sentences']} pieces of sentences find their block among the first five.",
            f"Training changed the reciprocal rank of sentences by {_change(found, 'cloze')}"
            + (
                f", that of titles by {_change(found, 'title')}, and that of reworded titles (fewest words shared with their block) "
                f"by {_change(found, 'reworded_title')}. All must gain."
                if "last_title_gain" in found
                else f", and that of {found['held_out_questions']} questions of documents left out by {_change(found, 'question')}. Both must gain."
                if "last_question_gain" in found
                else "."
            ),
        ]
    else:
        gained = [
            f"After {_steps(found['kept_step'])} of training {share['after']} of {found['sentences']} pieces of other sentences find their block "
            f"among the first five; before it was {share['before']}. The gain in the reciprocal rank is {found['gain']:+.3f}, 95 % interval "
            f"{found['gain_low']:+.3f} to {found['gain_high']:+.3f}"
            + ("." if found["gain_low"] > 0 else ": on these pieces no gain is shown, so the start may be as good."),
            *(
                [
                    f"Of documents that training left out a language model had written {found['held_out_questions']} questions. Their reciprocal rank changed by "
                    f"{found['question_gain']:+.3f}, 95 % interval {found['question_gain_low']:+.3f} to {found['question_gain_high']:+.3f}."
                ]
                if "question_gain" in found
                else []
            ),
            "These pieces are in the documents' own words. Where people ask in words of their own, compare both on some of their "
            "questions (realmctl rank, realmctl eval-run).",
        ]
    return "\n".join(
        [
            *gained,
            f"Use {found['made']['retriever']}; its index is {found['made']['index']}.",
            f"Now: {found['search']}",
        ]
    )
