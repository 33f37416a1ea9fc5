"""Training that is watched by cloze recall: measured at the start, every so often and at the end, with an alarm, and the best
weights kept, or the start where no gain is shown.

The measure of choice is the mean reciprocal rank, which counts every place; recall is logged beside it. A gain is the paired difference to the
start over the same sentences. It is shown where its 95 % interval lies above 0. Sentences have the documents' own words, so titles may be asked
for beside them: then a gain counts only where they show it too, and so do the reworded ones among them. So it is with questions that were written for documents which
training leaves out. A training whose task is not to find the block of a sentence, as REALM's, need not gain on sentences (`--keep unless-lost`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from torch import nn

from realmctl.artifacts import Artifact, Writer
from realmctl.corpus.corpus import Corpus
from realmctl.log import progress, say
from realmctl.models.inputs import Collator
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training import data_parallel
from realmctl.training.budget import within_minutes
from realmctl.training.evaluation import held_out
from realmctl.training.evaluation.best_weights import FOLDER, KeepsBest
from realmctl.training.evaluation.cloze_recall import FEWEST_TITLES, ClozePassages, Gain, Ranks, gain, recall
from realmctl.training.loop import train
from realmctl.training.monitoring.alarms import AlarmRule, Alarms
from realmctl.training.objective import Objective, Observer, Part, merged
from realmctl.training.settings.base import TrainSettings
from realmctl.training.settings.cloze import ClozeSettings

AMONG = 1000
"""Blocks among which the sentences search while training runs, so that a measurement takes seconds; `eval-cloze` searches among more."""
SENTENCES, TITLES, QUESTIONS = "cloze", "title", "question"
"""What is asked, as the names of measures begin."""


def _told(name: str, won: Gain) -> dict[str, float]:
    return {name: won.mean, f"{name}_low": won.low, f"{name}_high": won.high}


def lost_rule(steps: int, keeps_start: bool, what: str) -> AlarmRule:
    """The alarm of cloze recall: the gain over the start is shown to be a loss.

    keeps_start: Whether --keep does without the weights in such a case. what: Name of the stage.
    """
    advice = "Use a lower --lr or fewer --steps; --keep gain keeps the start in such a case."
    if keeps_start:
        advice = "These weights are not kept."
    elif what == "pretrain":
        advice = "REALM does not train this: a sentence's own block is no candidate. Answers may be found more often all the same, so judge by questions. --keep unless-lost does without such weights."
    return AlarmRule(
        "cloze_lost",
        "cloze_gain_high",
        -1e-9,
        0.0,
        1,
        range(steps + 1),
        "sentences find their blocks worse than at the start: at best {mean:+.4f} in the reciprocal rank",
        advice,
    )


@dataclass(frozen=True)
class ClozeQueries:
    """What a run is measured on.

    Args:
        asked: The sentences and their passages, and where they are asked for the titles and the questions with theirs.
        collator: Lays them out.
        precision: Arithmetic of the measurements.
    """

    asked: Mapping[str, ClozePassages]
    collator: Collator
    precision: str

    @classmethod
    def drawn(cls, settings: ClozeSettings, blocks: Artifact) -> ClozeQueries:
        """Draw what the settings ask for. Raises InputError for blocks with too few sentences, or without those of the questions."""
        corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
        asked = {SENTENCES: ClozePassages.drawn(corpus, settings.cloze_recall, AMONG, settings.seed)}
        if titles := ClozePassages.titled(corpus, settings.cloze_titles, AMONG, settings.seed):
            asked[TITLES] = titles
        if settings.questions is not None:
            of_blocks = held_out.questions_of(settings.questions, corpus)
            asked[QUESTIONS] = ClozePassages.asked(corpus, words, of_blocks, AMONG, settings.seed)
        return cls(asked, Collator.of(words), settings.precision)

    def ranks(
        self, retriever: Retriever, on_progress: Callable[[int], None] = lambda passages: None
    ) -> dict[str, Ranks]:
        """The ranks of each one's own passage, by what is asked."""
        given = retriever, self.collator, self.precision, on_progress
        return {name: each.ranks(*given) for name, each in self.asked.items()}


class OnCloze(KeepsBest):
    """Measures a retriever on sentences that were cut out of blocks.

    Args:
        modules: What is trained, and kept. They hold the retriever.
        retriever: What is measured.
        asked: The sentences, and what is asked beside them.
        settings: How often, when to stop, and what to keep.
        folder: Where the best weights are kept.
        what: Name of the stage for messages.
        start: Ranks before the first step, where they are known.
    """

    name = "cloze"

    def __init__(
        self,
        modules: nn.ModuleDict,
        retriever: Retriever,
        asked: ClozeQueries,
        settings: ClozeSettings,
        folder: Path,
        what: str,
        start: Mapping[str, Ranks] = MappingProxyType({}),
    ) -> None:
        super().__init__(settings.measured_every, modules, None if settings.keep == "last" else folder)
        self.retriever, self.asked, self.settings = retriever, asked, settings
        self.what, self.guarded = what, settings.keep in ("gain", "unless-lost")
        self.alarms = Alarms([lost_rule(settings.steps, self.guarded, what)], settings.stop_on, what)
        self.start = start
        self.reworded_N = titles.in_other_words() if (titles := asked.asked.get(TITLES)) else np.zeros(0, bool)

    def before_step(self, step: int) -> Mapping[str, Any]:
        """Every `every` steps, and before the first, measure the weights after `step` steps."""
        self.alarms.stop_if_raised(step)
        return super().before_step(step)

    def measure(self, step: int) -> dict[str, Any]:
        """Measure the weights, and keep them if they are the best. Returns recall, the gain over the start, and alarms."""
        ranks = self.start if self.start and not step else self.asked.ranks(self.retriever)
        self.start = self.start or ranks
        found: dict[str, Any] = recall(ranks[SENTENCES]) | self._gains(ranks)
        if step == 0 or self._is_good(found):
            score = step if self.settings.keep == "unless-lost" else found["cloze_rr"]
            self.offer(step, score, ranks={name: each.tolist() for name, each in ranks.items()})
        return merged(found, {"alarms": self.alarms.observe({**found, "step": step}) if step else ()})

    def _is_good(self, found: Mapping[str, Any]) -> bool:
        """Whether the weights may be kept: by the gain of sentences in `found`, and by those of titles and questions, where they are asked."""
        if not self.guarded:
            return True
        is_shown = {name: found[f"{name}_gain_low"] > 0 for name in self._names()}
        if self.settings.keep == "unless-lost":
            is_shown[SENTENCES] = found["cloze_gain_high"] >= 0
        return all(is_shown.values())

    def take(self, step: int) -> dict[str, Any]:
        """Called after `at_end`: load the weights that are kept into the modules.

        Returns the measures of what is kept, its step, and the gains of the last step as `last_cloze_gain`, `last_title_gain`,
        `last_reworded_title_gain` and `last_question_gain`, each with `_low` and `_high`. Raises InputError when the files of the best weights are damaged.
        """
        last = self.at_last
        kept, found = step, dict(last)
        if best := self.best():
            kept, ranks = best["step"], {name: np.array(each) for name, each in best["ranks"].items()}
            found |= recall(ranks[SENTENCES]) | self._gains(ranks)
        told = found if kept else last  # of the start there is no gain to tell
        say(
            f"{self.what}: cloze recall@5 {told['cloze_recall@5']:.3f} of {len(self.asked.asked[SENTENCES].sentences)} sentences among "
            f"{len(self.asked.asked[SENTENCES])} blocks; gain over the start {told['cloze_gain']:+.4f} in the reciprocal rank, 95 % interval "
            f"{told['cloze_gain_low']:+.4f} to {told['cloze_gain_high']:+.4f}; {self._others_told(told)}{self._kept(kept, step)}"
        )
        gains = {f"last_{name}": value for name, value in last.items() if "_gain" in name}
        return {**found, **gains, "kept_step": kept, "alarms": self.alarms.counts}

    def _names(self) -> list[str]:
        """The names of what must gain."""
        return [
            name for each in self.asked.asked for name in ((each, f"reworded_{each}") if each == TITLES else (each,))
        ]

    def _gains(self, ranks: Mapping[str, Ranks]) -> dict[str, float]:
        """The gains over the start, of titles also those of the reworded ones, and the mean reciprocal ranks of titles and of questions."""
        found = dict[str, float]()
        for name in self._names():
            rank_N, start_N = (each[name.removeprefix("reworded_")] for each in (ranks, self.start))
            if name not in self.asked.asked:
                rank_N, start_N = rank_N[self.reworded_N], start_N[self.reworded_N]
            elif name != SENTENCES:
                found[f"{name}_rr"] = round(float((1 / rank_N).mean()), 6)
            found |= _told(f"{name}_gain", gain(rank_N, start_N))
        return found

    def _others_told(self, found: Mapping[str, Any]) -> str:
        counts = {name: len(each.sentences) for name, each in self.asked.asked.items()}
        counts["reworded_title"] = int(self.reworded_N.sum())
        return "".join(
            f"{counts[name]} {name.replace('_', ' ')}s, {found[f'{name}_gain']:+.4f}, {found[f'{name}_gain_low']:+.4f} to {found[f'{name}_gain_high']:+.4f}; "
            for name in self._names()
            if name != SENTENCES
        )

    def _kept(self, kept: int, last: int) -> str:
        if self.guarded and not kept:
            why = "no gain is shown" if self.settings.keep == "gain" else "sentences show a loss, or titles no gain"
            return f"{why}, so the start is kept"
        return f"the weights of step {kept} of {last} are kept"

    def state(self) -> dict[str, Any]:
        """Return what was measured so far."""
        start = {name: each.tolist() for name, each in self.start.items()}
        return {"start": start, "alarms": self.alarms.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises InputError if the best weights that were kept are missing."""
        self.require_best(bool(state["start"]))
        self.start = {name: np.array(each) for name, each in state["start"].items()}
        self.alarms.restore(state["alarms"])


def train_on_cloze(
    objective: Objective[Part],
    retriever: Retriever,
    settings: TrainSettings,
    blocks: Artifact,
    out: Writer,
    what: str,
    observers: Sequence[Observer] = (),
    *,
    chance: float = 0.0,
) -> dict[str, Any]:
    """Train within the minutes of the settings, and measure cloze recall where they ask for it. See `realmctl.training.loop.train`.

    Args:
        objective: What to train. Its modules hold the retriever.
        retriever: What is measured, with the vocabulary of the blocks.
        settings: Those of the training. Only `ClozeSettings` ask for minutes and for cloze recall.
        blocks: Blocks that sentences are cut out of.
        out: The artifact being written.
        what: Name of the stage.
        observers, chance: Those of `train`.

    Raises:
        InputError: The blocks have too few sentences.
        QualityError: The run diverged, or an alarm is on at which it stops.
    """
    if not isinstance(settings, ClozeSettings):
        return train(objective, settings, out, what, observers, chance=chance)
    with data_parallel.process_group(pick_device(settings.device)):
        if not settings.cloze_recall:
            settings = within_minutes(settings, out, what, lambda: objective)
            return train(objective, settings, out, what, observers, chance=chance)
        asked = ClozeQueries.drawn(settings, blocks)
        if settings.cloze_titles and TITLES not in asked.asked:
            say(f"{what}: fewer than {FEWEST_TITLES} titles say what their block does not, so no titles are asked for")
        start = dict[str, Ranks]()

        def measure() -> None:  # before the first step, which need not do it again
            with progress(sum(map(len, asked.asked.values())), f"{what}, measuring", "blocks") as bar:
                start.update(asked.ranks(retriever, bar.advance))

        settings = within_minutes(settings, out, what, lambda: objective, measure)
        watch = OnCloze(objective.modules, retriever, asked, settings, out.scratch(FOLDER), what, start)
        metrics = train(objective, settings, out, what, [*observers, watch], chance=chance)
        last = watch.take(metrics["steps"])
        return {**metrics, **last, "alarms": {**metrics["alarms"], **last["alarms"]}}
