"""Measurements of adaptation without labels, read from their file: differences with intervals, and what pages call the arms and sets.

A difference is that of an arm and the encoder as published, query by query. Its 95 % interval is a bootstrap over queries and seeds: both
are drawn with replacement, 2,000 times, with a fixed seed.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Place = tuple[str, str, str]
"""Encoder, domain and split."""

Row = tuple[str, str]
"""Arm and search."""

Run = tuple[int, str]
"""Seed and device. The same seed on another device is another training."""

DRAWS = 2000

FEWEST_SEEDS = 3

SEARCHES = {
    "bm25": "BM25",
    "dense": "dense",
    "hybrid": "hybrid, RRF",
    "profile": "hybrid",
    "scores": "hybrid, weighted sum",
    "chosen": "hybrid, weighted sum, weight by cloze recall",
}

NAMES = {
    "bm25": "BM25",
    "encoder": "encoder as published",
    "ict": "ICT",
    "crops": "crops",
    "crops-20": "crops, 20 steps",
    "ict-hard": "ICT, with hard negatives of BM25",
    "ict-distilled": "ICT + KL",
    "ict-kept": "ICT + KL, kept only on a measured gain (`adapt`)",
    "ict-hard-judged": "ICT, with hard negatives of BM25, kept unless a loss is measured",
    "ict-hard-distilled": "ICT + KL, with hard negatives of BM25",
    "crops-kept": "crops + KL, kept only on a measured gain",
    "spider": "Spider",
    "cocondenser": "coCondenser",
    "retromae": "RetroMAE",
    "tsdae": "TSDAE, by sentence-transformers",
    "realm": "REALM after ICT, 200 steps of 8 sentences",
    "realm-kept": "REALM after `adapt`, 200 steps of 8 sentences",
    "realm-judged": "REALM after `adapt`, kept unless a loss is measured",
    "realm-apart": "REALM after `adapt`, candidates of other articles alone, kept unless a loss is measured",
    "realm-large": "REALM after the encoder, 400 steps of 64 sentences",
    "realm-encoder": "REALM after the encoder, 100 steps of 8 sentences",
    "causal": "a frozen causal language model as reader",
    "replug": "REPLUG, a frozen causal language model as reader",
    "revela": "Revela, 26 steps of 16 passages",
    "revela-short": "Revela, 18 steps of 16 passages",
    "generated": "questions of a language model",
    "generated-hard": "questions of a language model, with hard negatives",
}
"""What the page calls the arms, in its order. `labels-N` have N in their name."""

KEPT, ALWAYS = "ict-kept", "ict-distilled"
"""The arm of `adapt`, and the same training without its rule."""

STARTS = {
    "realm": "ict",
    "realm-kept": "ict-kept",
    "realm-judged": "ict-kept",
    "realm-apart": "ict-kept",
    "realm-large": "encoder",
    "realm-encoder": "encoder",
    "causal": "encoder",
    "replug": "encoder",
    "revela": "encoder",
    "revela-short": "encoder",
}
"""What each arm of REALM starts from."""


@dataclass(frozen=True)
class Asked:
    """A set of questions: what pages call it, its documents, and who asked."""

    name: str
    documents: str
    by: str


SETS = {
    ("covidqa", "test"): Asked(
        "COVID-QA", "4,086 passages of research articles on COVID-19", "biomedical experts, of the articles"
    ),
    ("man-pages", "test"): Asked(
        "man pages, tldr", "14,795 passages of man pages", "writers of tldr-pages: what an example does"
    ),
    ("man-pages", "nl2bash"): Asked("man pages, NL2Bash", "the same", "writers of NL2Bash: what a command line does"),
    ("mlquestions", "test"): Asked("MLQuestions", "9,211 passages on machine learning", "people; each was checked"),
    ("squad24", "test"): Asked(
        "SQuAD-style questions", "120 paragraphs of 24 Wikipedia articles", "people who saw the paragraph"
    ),
    ("qed", "test"): Asked("Natural Questions", "838 paragraphs of Wikipedia", "people who had not seen the paragraph"),
}
"""What the page says of a set of questions. Others are called by their domain and split."""


@dataclass(frozen=True)
class Difference:
    """A mean difference of nDCG@10, its 95 % interval, and the number of seeds."""

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def verdict(self) -> str:
        if self.low <= 0 <= self.high:
            return "not shown"
        return ("a gain" if self.low > 0 else "a loss") + (
            "" if self.seeds >= FEWEST_SEEDS else f" ({self.seeds} seed{'s' * (self.seeds > 1)})"
        )

    @property
    def cell(self) -> str:
        """The mean, bold where it is shown."""
        return f"{self.mean:+.3f}" if self.low <= 0 <= self.high else f"**{self.mean:+.3f}**"

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def difference(of: NDArray[np.float64], base: NDArray[np.float64]) -> Difference:
    """The difference of measurements [S seeds, Q queries] and a base [1 or S, Q], with its bootstrap interval."""
    difference_SQ = of - base
    seeds, queries = difference_SQ.shape
    rng = np.random.default_rng(0)
    drawn = ((rng.integers(seeds, size=seeds), rng.integers(queries, size=queries)) for _ in range(DRAWS))
    means = [difference_SQ[chosen].mean(0)[asked].mean() for chosen, asked in drawn]
    low, high = np.quantile(means, (0.025, 0.975))
    return Difference(float(difference_SQ.mean()), float(low), float(high), seeds)


def called(arm: str) -> str:
    """What the page calls an arm. Labels may be of any number; an arm without a name has its own."""
    count = arm.removeprefix("labels-")
    return f"{int(count):,} labelled questions" if count != arm and count.isdigit() else NAMES.get(arm, arm)


def searched(search: str) -> str:
    return SEARCHES.get(search, search)


def order(row: Row) -> tuple[int, int, int, str]:
    """The place of a row on the page: by arm, labels last and by their number; and by search."""
    arm, search = row
    count = arm.removeprefix("labels-")
    labels = int(count) if count != arm and count.isdigit() else 0
    return labels, [*NAMES, arm].index(arm), [*SEARCHES, search].index(search), arm


@dataclass(frozen=True)
class Told:
    """A trained run: its gain over the start in the mean reciprocal rank of sentences and of titles, in nDCG@10 of questions that a language model wrote, the same by
    its judgements, and in nDCG@10 of people's questions.

    None where it was not measured, as titles where the documents have none.
    """

    place: Place
    arm: str
    seed: int
    sentences: float | None
    titles: float | None
    questions: float
    generated: float | None = None
    judged: float | None = None


class Results:
    """The measurements, by domain and split."""

    def __init__(self, path: Path) -> None:
        self._rows: dict[Place, dict[Row, dict[Run, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
        self._gains: dict[tuple[Place, Row, Row], Difference] = {}
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        encoders = dict.fromkeys(line["encoder"] for line in lines if line["encoder"])
        self._cloze: dict[Place, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
        for line in [line for line in lines if line["search"] == "cloze"]:
            place = line["encoder"], line["domain"], line["split"]
            self._cloze[place][line["arm"], line["seed"]] = line["cloze"]
        self._told: dict[Place, dict[tuple[str, int], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        for line in [line for line in lines if "told" in line]:
            place = line["encoder"], line["domain"], line["split"]
            self._told[place][line["arm"], line["seed"]][line["search"]] = line["told"]
        for line in [line for line in lines if "ndcg" in line]:
            for encoder in (line["encoder"],) if line["encoder"] else encoders:
                run = line["seed"], line.get("device", "cpu")
                self._rows[encoder, line["domain"], line["split"]][line["arm"], line["search"]][run] = line

    @property
    def on_gpu(self) -> list[str]:
        """What the page says of runs on a GPU; empty where there are none."""
        records = [record for rows in self._rows.values() for runs in rows.values() for record in runs.values()]
        count = sum(record.get("device") == "cuda" for record in records)
        if not count:
            return []
        return [
            f"{count} of the {len(records)} measurements were made on a GPU, in bfloat16. The encoder's weights were rounded to float16 on their way there, and the "
            "encoder as published was measured on a CPU. Where `adapt` kept the encoder, this alone changed nDCG@10 by .001 at most.",
            "",
        ]

    @property
    def places(self) -> list[Place]:
        """(encoder, domain, split) of everything that was measured with the encoder as published."""
        return [place for place, rows in self._rows.items() if ("encoder", "dense") in rows]

    def rows(self, place: Place) -> list[Row]:
        """(arm, search) of what was measured there, in the order of the page."""
        return sorted(self._rows[place], key=order)

    def values(self, place: Place, row: Row) -> NDArray[np.float64]:
        """nDCG@10, [S, Q]."""
        return np.array([record["ndcg"] for _, record in sorted(self._rows[place][row].items())])

    def told(self, place: Place) -> list[Told]:
        """What measures without labels told of each trained run, and the questions of the same run. Not of runs that cloze recall itself chose."""
        known, asked, dense = self._cloze.get(place, {}), self._told.get(place, {}), self._rows[place]
        start, base = known.get(("encoder", 0), {}), self.values(place, ("encoder", "dense"))[0]
        written = asked.get(("encoder", 0), {}).get("generated")
        found = []
        for arm, seed in dict.fromkeys([*known, *asked]):
            told, by_model = known.get((arm, seed), {}), asked.get((arm, seed), {})
            record = next((each for run, each in dense.get((arm, "dense"), {}).items() if run[0] == seed), None)
            chosen = told.get("kept_step") is not None or (record and record["cloze"].get("kept_step") is not None)
            if record is None or arm == "encoder" or chosen:
                continue
            gains = {
                queries: told[name] - start[name] if name in told and name in start else None
                for queries, name in (("sentences", "dense_rr"), ("titles", "title_rr"))
            }
            generated = by_model["generated"] - written if "generated" in by_model and written is not None else None
            each = Told(
                place, arm, seed, **gains, questions=float(np.mean(np.array(record["ndcg"]) - base)), generated=generated,
                judged=by_model.get("judged"),
            )  # fmt: skip
            if any(value is not None for value in (*gains.values(), generated, each.judged)):
                found.append(each)
        return sorted(found, key=lambda each: (order((each.arm, "dense")), each.seed))

    def decided(self, place: Place) -> list[tuple[bool, float]]:
        """Of each run of `adapt`: whether its training was kept, and the change of nDCG@10 of dense search by people's questions."""
        base, runs = self.values(place, ("encoder", "dense"))[0], self._rows[place].get((KEPT, "dense"), {})
        return [
            (bool(each["cloze"].get("kept_step")), float(np.mean(np.array(each["ndcg"]) - base)))
            for each in runs.values()
        ]

    def minutes(self, place: Place, row: Row) -> str:
        """Processor minutes of the training, the most of the runs on a CPU; a dash where another row had trained the retriever, or a GPU."""
        on_cpu = [record for record in self._rows[place][row].values() if record.get("device", "cpu") == "cpu"]
        most = max((float(record["cpu_minutes"]) for record in on_cpu), default=0.0)
        return f"{most:.1f}" if most >= 0.05 or row[0] in ("bm25", "encoder") else "-"

    def gain(self, place: Place, row: Row, base: Row) -> Difference:
        if (place, row, base) not in self._gains:
            self._gains[place, row, base] = difference(self.values(place, row), self.values(place, base))
        return self._gains[place, row, base]

    def over_start(self, place: Place, arm: str, search: str) -> Difference | None:
        """What an arm of REALM gains in a search over what it started from, seed by seed, on the same device where both were; None where that was not measured."""
        own, start = (self._rows[place].get((name, search), {}) for name in (arm, STARTS[arm]))
        of_seed = {seed: record for (seed, _), record in start.items()}
        if STARTS[arm] == "encoder":  # nothing in it is random
            of_seed = {seed: record for seed, _ in own for record in start.values()}
        pairs = [(own[run], start.get(run) or of_seed[run[0]]) for run in sorted(own) if run[0] in of_seed]
        if not pairs:
            return None
        return difference(*(np.array([record["ndcg"] for record in records]) for records in zip(*pairs, strict=True)))

    def best_zero_shot(self, place: Place) -> Row:
        """The best of BM25, the encoder and their hybrid."""
        rows = [row for row in self._rows[place] if row[0] in ("bm25", "encoder")]
        return max(rows, key=lambda row: float(self.values(place, row).mean()))


def named(place: Place) -> str:
    known = SETS.get(place[1:])
    return known.name if known else f"{place[1]} {place[2]}"


def ordered(results: Results) -> list[Place]:
    """The places in the order of `SETS`, others last."""
    known = list(SETS)
    return sorted(results.places, key=lambda place: known.index(place[1:]) if place[1:] in known else len(known))
