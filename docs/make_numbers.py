"""Write docs/numbers.json, and what the pages quote of reports: python docs/make_numbers.py

Every number is read at the place where it was measured: a report beside its runs, the notes of a benchmark, the runs of the demo. A
page quotes it between two comments, <!--number NAME-->.620<!--/number-->. A page quotes a whole table or list of a report between
<!--part PATH#HEADING table 1--> and <!--/part-->: the path in the repository, the section, which table or list of it, and `columns 1 3` where
not all are quoted. The tests compare both with the reports, so what was measured anew and not written anew is found.
"""

from __future__ import annotations

import json
import os
import posixpath
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
    ROOT / "docs" / "how-to" / "reproduce-realm.md",
    ROOT / "docs" / "how-to" / "search-and-rank.md",
    ROOT / "docs" / "lab" / "language-models.md",
    *sorted((ROOT / "docs" / "results").glob("*.md")),
    ROOT / "benchmarks" / "README.md",
]
QUOTE = re.compile(r"(<!--number ([\w.]+)-->)(.*?)(<!--/number-->)", re.DOTALL)
PART = re.compile(
    r"(<!--part (\S+?)#([^>]+?) (table|list) (\d+)(?: columns ([\d ]+))?-->\n)(?:(?!<!--part).)*?<!--/part-->",
    re.DOTALL,
)
BEGINS = {"table": "|", "list": ("- ", "  ")}
"""How each line of such a part begins."""
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


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


ADAPT = "docs/results/adapt/report.md"
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
ABLATION = "docs/results/ablation/report.md"
REAL_TEXT, LONGER = "docs/results/real-text/report.md", "docs/results/real-text-long/report.md"
CHANGED = "docs/results/changed-corpus/report.md"
SPEED, RATIO = "docs/results/speed/report.md", r"[^|]*\| 1 \|[^*]*\*\*([\d.]+)\*\*"
"""A line of one thread, and the ratio that stands in it."""
OTHER_STARTS = "docs/lab/starts.md"
INDEXES, OF_TYPE = "docs/results/indexes/report.md", r"\n\| 1,000,000 \| `{}`[^|]* \|"
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
    "adapt.lost": Measured("docs/results/adapt/notes.md", r"\n\| 50 of 32 pairs \|.*\| (-\.\d+) \[[^]]*\] \|\n"),
    **{
        f"orders.{name}": Measured(
            "docs/results/teacher/orders.md", rf"\n\| {called} +\| ([-+.\d]+ \[[^]]*\]), (?:reached|missed) +\|"
        )
        for name, called in (("sentences", "Pieces of sentences"), ("written", "Questions of a language model"))
    },
    **{
        f"{arm}_again.{name}": Measured(
            "docs/results/teacher/fused.md", rf"\n\| {arm} - best \|(?:[^|\n]*\|){{{place}}} ([^|\n]+?) \|"
        )
        for arm in ("rerank", "fused")
        for place, name in enumerate(("covid", "ml", "bash"))
    },
    **{
        f"{arm.replace('-', '_')}.{name}": Measured(
            "docs/results/teacher/report.md",
            rf"(?s)taught by ms-marco-MiniLM-L12-v2\n.*?\n\| {arm} - {base} \|(?:[^|\n]*\|){{{place}}} ([^|\n]+?) \|",
        )
        for arm, base in (("rerank", "best"), ("rerank-20", "best"), ("student", "encoder"), ("student-best", "best"))
        for name, place in (("covid", 0), ("tldr", 1), ("bash", 2), ("ml", 3))
        if name != "tldr" or arm == "student-best"
    },
    "hybrid.gain": Measured(
        "docs/results/hybrid/report.md",
        r"(?s)## all-MiniLM-L6-v2\n.*?\| \*\*mean of 6\*\* [^\n]*\| ([+-]0\.\d+) \| \S+ \|\n",
    ),
    **{
        f"hybrid.{asked}": Measured(
            "docs/results/hybrid/report.md",
            rf"(?s)## all-MiniLM-L6-v2\n.*?\n\| {ASKED[asked]} \|[^\n]*\| ([+-]0\.\d+ \[\S+ \S+\]) \| \S+ \[\S+ \S+\] \|\n",
        )
        for asked in ("covid", "nl2bash")
    },
    "adapt.scores_worst": Measured(ADAPT, SCORES.format(r"\S+ \| ([+-]0\.\d+)")),
    **{
        f"adapt.{way}_{asked}": Measured(
            ADAPT, rf"(?s)\n## {ASKED[asked]}\n(?:(?!\n## ).)*?\n\| {re.escape(arm)} \| {search} \| (\S+) \|"
        )
        for way, (arm, search, sets) in WAYS.items()
        for asked in sets
    },
    "revise.new": Measured("docs/results/revise/report.md", r"\n\| 1 % \| \S+ ± \S+ % \| (\S+) ± \S+ → (\S+) ±"),
    "revise.embedded": Measured("docs/results/revise/report.md", r"\n\| 1 % \| (\S+) ± \S+ % \|"),
    "changed.new": Measured(
        CHANGED, r"\*\*Search, BM25\*\*: .*? comes first for (\S+) of .*? before and (\S+) after\."
    ),
    "changed.em": Measured(
        CHANGED, r"\*\*Answers\*\*: exact match on the new numbers is (\S+) before and (\S+) after\."
    ),
    "starts.ict": Measured("docs/results/starts/report.md", r"(?s)\A.*?\n\| ICT +\| \S+ ± \S+ \| (\.\d+) "),
    "starts.cocondenser_ict": Measured(
        "docs/results/starts/report.md", r"(?s)\A.*?\n\| coCondenser \+ ICT \| \S+ ± \S+ \| (\.\d+) "
    ),
    "starts.import_man_pages": Measured(OTHER_STARTS, r"\n\| `import --scale 20` \| 384 \|.*\| (\.\d+) \|"),
    "starts.pca_man_pages": Measured(OTHER_STARTS, r"\n\| `ict-init .*? --steps 0` \| 128 \|.*\| (\.\d+) \|"),
    "table1.realm": Measured("docs/results/table1/report.md", r"\n\| REALM, X = other sentences +\| (\.\d+) "),
    "table1.same": Measured("docs/results/table1/report.md", r"\n\| REALM, X = Z +\| (\.\d+) "),
    "table1.bm25": Measured("docs/results/table1/report.md", r"\n\| BM25 and a reader \(DrQA's kind\) +\| (\.\d+) "),
    "table1.orqa": Measured("docs/results/table1/report.md", r"\n\| ORQA +\| (\.\d+) "),
    **{
        f"wikipedia.{name}_{depth}": Measured(
            "docs/results/wikipedia/report.md",
            rf"\n- \*\*{label}\*\*, minus (?!that start|Revela)[^\n]* recall@{depth} (\S+ \[[^]]*\])",
        )
        for name, label in (
            ("realm", "REALM"),
            ("salient", "Salient spans"),
            ("weak", "REALM from a weaker start"),
            ("weak_salient", "Salient spans from a weaker start"),
        )
        for depth in (1, 5, 20)
    },
    **{
        f"wikipedia.{name}_{depth}": Measured(
            "docs/results/wikipedia/report.md", rf"\n- \*\*{label}:[^\n]* recall@{depth} (\S+ \[[^]]*\])"
        )
        for name, label in (
            ("causal", r"REALM with a frozen causal reader from a weaker start\*\*, minus that start"),
            ("replug", r"REPLUG from a weaker start\*\*, minus that start"),
            ("revela", r"Revela from a weaker start\*\*, minus that start"),
            ("over_revela", r"REALM from a weaker start\*\*, minus Revela of equal compute"),
        )
        for depth in (1, 5, 20)
    },
    "wikipedia.taught": Measured(
        "docs/results/wikipedia/report.md", r"\n\| a detached reader teaches more [^\n]* (-?\.\d+ \[[^]]*\]), > 0"
    ),
    "wikipedia.em": Measured("docs/results/wikipedia/exact-match.md", r"\n- em, [^:]*: (\S+ \[[^]]*\])"),
    "wikipedia.em_causal": Measured("docs/results/wikipedia/exact-match-causal.md", r"\n- em, [^:]*: (\S+ \[[^]]*\])"),
    "wikipedia.em_apart": Measured("docs/results/wikipedia/exact-match.md", r"\n\| `realm` alone \| \d+ \| (\.\d+) \|"),
    "wikipedia.em_both": Measured("docs/results/wikipedia/exact-match.md", r"\n\| both \| \d+ \| (\.\d+) \|"),
    **{
        f"wikipedia.em_{arm}": Measured(
            "docs/results/wikipedia/exact-match.md", rf"\n\| {arm} \| \d \| (\.\d+) \| \.\d+ \| \.\d+ "
        )
        for arm in ("realm", "bm25")
    },
    "wikipedia.claims": Measured(
        "docs/results/wikipedia/report.md", r"\n- Of (\d+ claims that were written before their runs [^(]*) \("
    ),
    "readers.gain": Measured(
        "docs/results/readers/report.md", r"\*\*causal, frozen, marginal\*\*: [^;]*; recall@5 (\S+ \[[^]]*\])"
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


def quoting(text: str, numbers: Mapping[str, str], page: Path = ROOT / "README.md") -> str:
    """Return a page's text with the given numbers and with the parts of reports.

    Raises KeyError for a name that is not known, and ValueError for a part that its report does not have.
    """
    text = QUOTE.sub(lambda quote: quote[1] + numbers[quote[2]] + quote[4], text)
    folder = page.relative_to(ROOT).parent.as_posix()
    return PART.sub(
        lambda found: (
            f"{found[1]}\n{part(found[2], found[3], found[4], int(found[5]), folder, found[6])}\n\n<!--/part-->"
        ),
        text,
    )


def part(report: str, heading: str, kind: str, number: int, folder: str, columns: str | None = None) -> str:
    """Return a table or a list of a report's section, with links that lead from `folder`. Raises ValueError if there is none.

    Args:
        report: Path in the repository.
        heading: The section.
        kind: "table" or "list".
        number: Which of them, from 1.
        folder: Folder of the page that quotes it.
        columns: Columns of the table to quote, from 1, such as "1 3". None: all.
    """
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", (ROOT / report).read_text("utf-8"), re.M | re.S)
    found: list[list[str]] = []
    inside = False
    for line in section[1].splitlines() if section else ():
        wanted = line.startswith(BEGINS[kind]) and (inside or line.startswith(BEGINS[kind][0]))
        if wanted and not inside:
            found.append([])
        if wanted:
            found[-1].append(line)
        inside = wanted
    if len(found) < number:
        raise ValueError(f"{report}: the section {heading!r} has {len(found)} {kind}s; a page quotes number {number}.")
    lines = found[number - 1]
    if columns:
        cells = [re.split(r"(?<!\\)\|", line) for line in lines]
        lines = [f"|{'|'.join(row[int(column)] for column in columns.split())}|" for row in cells]
    return LINK.sub(lambda link: _moved(link, report, folder), "\n".join(lines))


def _moved(link: re.Match[str], report: str, folder: str) -> str:
    if "://" in link[1]:
        return link[0]
    there = posixpath.join(posixpath.dirname(report), link[1]) if link[1] else report
    return f"]({os.path.relpath(there, folder or '.')}{link[2] or ''})"


if __name__ == "__main__":
    found = numbers()
    FILE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    for page in PAGES:
        page.write_text(quoting(page.read_text(encoding="utf-8"), found, page), encoding="utf-8")
