"""Write docs/numbers.json, and the numbers in the pages that quote them: python docs/make_numbers.py

Every number is read at the place where it was measured: a results page, the notes of a benchmark, the runs of the demo. A page
quotes it between two comments, <!--number NAME-->.620<!--/number-->. The tests compare both, so a number that was measured anew
and not written anew is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "numbers.json"
DEMO = ROOT / "docs" / "results" / "demo.jsonl"
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "tutorial.md",
    ROOT / "docs" / "how-to" / "adapt-without-labels.md",
    ROOT / "docs" / "how-to" / "choose-index.md",
    ROOT / "docs" / "how-to" / "language-model-reader.md",
    ROOT / "docs" / "how-to" / "reproduce-realm.md",
    ROOT / "docs" / "how-to" / "train-without-labels.md",
    ROOT / "docs" / "results" / "index.md",
    ROOT / "benchmarks" / "README.md",
]
QUOTE = re.compile(r"(<!--number ([\w.]+)-->)(.*?)(<!--/number-->)", re.DOTALL)


@dataclass(frozen=True)
class Measured:
    """Where a number stands.

    Attributes:
        page: Path in the repository.
        pattern: Regular expression with one group for each number of the text.
        decimals: Digits after the point to round to. None: as it stands.
        joint: What stands between several numbers.
    """

    page: str
    pattern: str
    decimals: int | None = None
    joint: str = " to "

    def read(self) -> str:
        """Return the number as pages quote it. Raises ValueError if the page does not have it exactly once."""
        found = re.findall(self.pattern, (ROOT / self.page).read_text(encoding="utf-8"))
        if len(found) != 1:
            raise ValueError(
                f"{self.page}: {self.pattern} is found {len(found)} times; docs/make_numbers.py wants one."
            )
        numbers = found[0] if isinstance(found[0], tuple) else (found[0],)
        if self.decimals is not None:
            numbers = tuple(f"{float(number):.{self.decimals}f}" for number in numbers)
        return self.joint.join(numbers)


ADAPT = "docs/results/adapt.md"
SCORES = r"\n\| encoder as published \| hybrid, weighted sum \|.*\| {} \| 1 \|\n"
ASKED = {
    "covid": "COVID-QA",
    "tldr": "man pages, tldr",
    "nl2bash": "man pages, NL2Bash",
    "ml": "MLQuestions",
    "squad": "SQuAD-style questions",
    "nq": "Natural Questions",
}
DENSE, HYBRID = "dense", "hybrid, weighted sum"
WAYS = {
    "encoder": ("encoder as published", DENSE, ASKED),
    "hybrid": ("encoder as published", HYBRID, ASKED),
    "ict": ("ICT", DENSE, ("covid", "nl2bash")),
    "ict_hybrid": ("ICT", HYBRID, ("covid",)),
    "adapt": ("ICT + KL, kept only on a measured gain (`adapt`)", DENSE, ("covid", "ml")),
    "adapt_hybrid": ("ICT + KL, kept only on a measured gain (`adapt`)", HYBRID, ASKED),
    "labels_32": ("32 labelled questions", DENSE, ("tldr", "ml")),
    "labels_32_hybrid": ("32 labelled questions", HYBRID, ("tldr", "ml")),
    "labels_128": ("128 labelled questions", DENSE, ("tldr", "ml")),
    "labels_128_hybrid": ("128 labelled questions", HYBRID, ("tldr", "ml")),
    "labels_1000": ("1,000 labelled questions", DENSE, ("tldr", "ml")),
    "labels_1000_hybrid": ("1,000 labelled questions", HYBRID, ("tldr", "ml")),
}
"""Rows of the tables of that page: retriever, search, and the sets of questions whose tables are quoted."""
ABLATION = "docs/results/ablation.md"
REAL_TEXT, LONGER = "docs/results/real-text.md", "docs/results/real-text-long.md"
CHANGED = "docs/results/changed-corpus.md"
SPEED, RATIO = "docs/results/speed.md", r"[^|]*\| 1 \|[^*]*\*\*([\d.]+)\*\*"
"""A line of one thread, and the ratio that stands in it."""
OTHER_STARTS = "docs/how-to/other-starts.md"
INDEXES, OF_TYPE = "docs/results/indexes.md", r"\n\| 1,000,000 \| `{}`[^|]* \|"
BUILD, REFRESH, ONE = r" ([\d.,]+) \(", r"[^|]*\| ([\d.,]+) \(", r"(?:[^|]*\|){5} ([\d.,]+) /"
"""Columns of a line of that table."""
ARM = r"\n\| {} +\| +\S+ \| +5 \| (\.\d+) "
INTERVAL = r"([+-]0?\.\d+ \[[+-]0?\.\d+, [+-]0?\.\d+\])"
MEASURED = {
    "ablation.realm": Measured(ABLATION, ARM.format("REALM")),
    "ablation.orqa": Measured(ABLATION, ARM.format("ORQA")),
    "ablation.same": Measured(ABLATION, ARM.format("X = Z")),
    "ablation.bm25": Measured(ABLATION, ARM.format("BM25")),
    "ablation.closed_book": Measured(ABLATION, ARM.format("closed book")),
    "ablation.never_refreshed": Measured(ABLATION, ARM.format("index never refreshed")),
    "ablation.realm_joint": Measured(ABLATION, ARM.format("REALM, tuned jointly")),
    "ablation.orqa_joint": Measured(ABLATION, ARM.format("ORQA, tuned jointly")),
    "ablation.gain": Measured(ABLATION, r"\| Pre-training helps +\|[^|]+\| +(\S+) \["),
    "real_text.em": Measured(REAL_TEXT, rf"- REALM minus start, copy-trained reader: {INTERVAL}"),
    "real_text.recall_1": Measured(
        REAL_TEXT, rf"- recall@1 of REALM minus that of its start, all questions: {INTERVAL}"
    ),
    "real_text_long.em": Measured(LONGER, rf"- REALM minus start, copy-trained reader: {INTERVAL}"),
    "real_text_long.recall_1": Measured(
        LONGER, rf"- recall@1 of REALM minus that of its start, all questions: {INTERVAL}"
    ),
    "real_text_long.recall_1_squad": Measured(
        LONGER, rf"- recall@1 of REALM minus that of its start, SQuAD-style questions: {INTERVAL}"
    ),
    "real_text_long.em_plain": Measured(LONGER, rf"- REALM's retriever minus start, plain reader: {INTERVAL}"),
    "adapt.scores": Measured(ADAPT, SCORES.format(r"([+-]0\.\d+) \| \S+")),
    "adapt.adapted": Measured(
        ADAPT,
        r"\n\| ICT \+ KL, kept only on a measured gain \(`adapt`\) \| hybrid, weighted sum \|.*\| ([+-]0\.\d+) \| \S+ \| \d+ \|\n",
    ),
    "adapt.lost": Measured("docs/results/adapt-recipe.md", r"\n\| 50 of 32 pairs \|.*\| (-\.\d+) \[[^]]*\] \|\n"),
    "adapt.scores_worst": Measured(ADAPT, SCORES.format(r"\S+ \| ([+-]0\.\d+)")),
    **{
        f"adapt.{way}_{asked}": Measured(
            ADAPT, rf"(?s)\n## {ASKED[asked]}\n(?:(?!\n## ).)*?\n\| {re.escape(arm)} \| {search} \| (\S+) \|"
        )
        for way, (arm, search, sets) in WAYS.items()
        for asked in sets
    },
    "revise.new": Measured("docs/results/revise.md", r"\n\| 1 % \| \S+ ± \S+ % \| (\S+) ± \S+ → (\S+) ±"),
    "revise.embedded": Measured("docs/results/revise.md", r"\n\| 1 % \| (\S+) ± \S+ % \|"),
    "changed.new": Measured(
        CHANGED, r"\*\*Search, BM25\*\*: .*? comes first for (\S+) of .*? before and (\S+) after\."
    ),
    "changed.em": Measured(
        CHANGED, r"\*\*Answers\*\*: exact match on the new numbers is (\S+) before and (\S+) after\."
    ),
    "starts.ict": Measured("docs/results/starts.md", r"(?s)\A.*?\n\| ICT +\| \S+ ± \S+ \| (\.\d+) "),
    "starts.cocondenser_ict": Measured(
        "docs/results/starts.md", r"(?s)\A.*?\n\| coCondenser \+ ICT \| \S+ ± \S+ \| (\.\d+) "
    ),
    "starts.import_man_pages": Measured(OTHER_STARTS, r"\n\| `import --scale 20` \| 384 \|.*\| (\.\d+) \|"),
    "starts.pca_man_pages": Measured(OTHER_STARTS, r"\n\| `ict-init .*? --steps 0` \| 128 \|.*\| (\.\d+) \|"),
    "table1.realm": Measured("docs/results/table1.md", r"\n\| REALM, X = other sentences +\| (\.\d+) "),
    "table1.same": Measured("docs/results/table1.md", r"\n\| REALM, X = Z +\| (\.\d+) "),
    "table1.bm25": Measured("docs/results/table1.md", r"\n\| BM25 and a reader \(DrQA's kind\) +\| (\.\d+) "),
    "table1.orqa": Measured("docs/results/table1.md", r"\n\| ORQA +\| (\.\d+) "),
    **{
        f"wikipedia.{name}_{depth}": Measured(
            "docs/results/wikipedia.md", rf"\n- \*\*{label}\*\*, minus [^\n]* recall@{depth} (\S+ \[[^]]*\])"
        )
        for name, label in (("realm", "REALM"), ("salient", "Salient spans"))
        for depth in (1, 5, 20)
    },
    "readers.gain": Measured(
        "docs/results/readers.md", r"\*\*causal, frozen, marginal\*\*: [^;]*; recall@5 (\S+ \[[^]]*\])"
    ),
    "speed.step": Measured(SPEED, rf"\n\| pre-training step \| L6-[^|]*\| float32 \|{RATIO}", 1),
    "speed.step_bf16": Measured(SPEED, rf"\n\| pre-training step \| L6-[^|]*\| bfloat16 \|{RATIO}", 1),
    "speed.embedding": Measured(SPEED, rf"\n\| embedding of blocks \|[^|]*\| float32 \|{RATIO}", 1),
    "speed.embedding_bf16": Measured(SPEED, rf"\n\| embedding of blocks \|[^|]*\| bfloat16 \|{RATIO}", 1),
    "speed.dump_bz2": Measured(SPEED, rf"\n\| dump\.xml\.bz2 into blocks \|[^|]*\| chunk \|{RATIO}", 1),
    "speed.dump_xml": Measured(SPEED, rf"\n\| dump\.xml into blocks \|[^|]*\| chunk \|{RATIO}", 1),
    "speed.serve": Measured(SPEED, rf"\n\| answers to 64 clients \|[^|]*\| serve \|{RATIO}", 1),
    **{
        f"indexes.{name}_{kind}": Measured(INDEXES, OF_TYPE.format(kind) + column)
        for name, kind, column in (
            ("build", "int8", BUILD),
            ("build", "faiss", BUILD),
            ("refresh", "int8", REFRESH),
            ("refresh", "faiss", REFRESH),
            ("one", "exact", ONE),
            ("one", "int8", ONE),
            ("one", "faiss", ONE),
        )
    },
    "fidelity": Measured("docs/concepts/fidelity.md", r"\| RealmForOpenQA \|[^|]*\| (\S+) \|"),
}


def demo() -> dict[str, str]:
    """Return the range of exact match over the runs of the demo, without and with pre-training."""
    runs = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()]
    numbers = {arm: sorted(run[arm] for run in runs) for arm in ("without", "with")}
    return {
        **{f"demo.{arm}": f"{low:.2f} to {high:.2f}" for arm, (low, *_, high) in numbers.items()},
        "demo.runs": str(len(runs)),
    }


def numbers() -> dict[str, str]:
    """Return every number by its name, as pages quote it."""
    return {**demo(), **{name: place.read() for name, place in MEASURED.items()}}


def quoting(text: str, numbers: Mapping[str, str]) -> str:
    """Return a page's text with the given numbers. Raises KeyError for a name that is not known."""
    return QUOTE.sub(lambda quote: quote[1] + numbers[quote[2]] + quote[4], text)


if __name__ == "__main__":
    found = numbers()
    FILE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    for page in PAGES:
        page.write_text(quoting(page.read_text(encoding="utf-8"), found), encoding="utf-8")
