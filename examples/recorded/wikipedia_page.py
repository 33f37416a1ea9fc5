"""Write the page on REALM over real articles from the file of results: examples/recorded/wikipedia_page.py RUNS.jsonl --page PAGE.md

The claims and their rules were written down before the runs.
"""

import argparse
import os
import textwrap
from collections import Counter
from copy import copy
from pathlib import Path

from judged import DASH, Claim, cell, circumstances, judged, minutes, table, verdicts
from ledger import Ledger, Record
from notation import interval, mean_and_sd, signed
from spread import difference, spread

ARMS = {
    "bm25": "BM25",
    "start": "the sentence encoder as it came",
    "ict": "ICT, from which all arms below start",
    "orqa": "ORQA of equal compute: more ICT",
    "realm": "REALM",
    "random": "REALM, random masks",
    "random-span": "REALM, random spans",
    "stale": "REALM, the index is never made anew",
}
WEAKER = {
    "weak-ict": "ICT, from which both start",
    "weak-orqa": "ORQA of equal compute: more ICT",
    "weak-realm": "REALM",
    "weak-random-span": "REALM, random spans",
    "weak-other": "REALM, candidates of other articles alone",
    "weak-taught": "REALM, p(z\\|x) taught by a reader that gets no gradient through it",
    "weak-more": "REALM, 16 candidates",
    "weak-many": "REALM, 32 candidates in as much time",
    "weak-beside": "REALM, ICT's loss beside, in as much time",
    "weak-useful": "REALM, the half of the spans that blocks help most with, in as much time",
    "weak-causal": "REALM, the reader is SmolLM2-135M-Instruct, frozen",
    "weak-replug": "REPLUG, the reader is SmolLM2-135M-Instruct",
    "weak-revela": "Revela, the language model is SmolLM2-135M-Instruct",
}
"""Arms of a weaker start: the encoder of the reader that has practised, with a new projection."""
WEAKER_SHARED = ("weak-ict.retriever", "weak-ict.embeddings", "weak-ict.index")
QUESTIONS = {"nq": "NQ", "webq": "WebQuestions", "trec": "CuratedTREC", "selqa": "SelQA"}
SHARED = (
    "blocks",
    "spans",
    "encoder",
    "start.retriever",
    "start.embeddings",
    "start.index",
    "ict.retriever",
    "ict.embeddings",
    "ict.index",
)
AFTER_ICT = ("orqa", "realm", "random", "random-span", "stale")
LEAST = 0.01
DEPTHS = ("recall@1", "recall@5", "recall@20")

LEAST_BETWEEN_REALMS = 0.005
ALL = "all"
"""The name of the questions of all sets together."""

CLAIMS = (
    *(
        Claim(f"{statement}, {label}", (f"realm.{name}", "recall@5"), (f"{other}.{name}", "recall@5"), LEAST)
        for statement, other in (
            ("REALM finds more than ORQA of equal compute", "orqa"),
            ("salient spans find more than random masks", "random"),
            ("a fresh index finds more than a stale one", "stale"),
        )
        for name, label in QUESTIONS.items()
    ),
    *(
        Claim(f"{statement}, all questions, {depth}", (f"{arm}.{ALL}", depth), (f"{other}.{ALL}", depth), least)
        for statement, arm, other, least in (
            ("REALM finds more than ORQA of equal compute", "realm", "orqa", LEAST),
            ("REALM with random masks finds more than ORQA of equal compute", "random", "orqa", LEAST),
            ("salient spans find more than random masks", "realm", "random", LEAST_BETWEEN_REALMS),
            ("salient spans find more than random spans", "realm", "random-span", LEAST_BETWEEN_REALMS),
            ("a fresh index finds more than a stale one", "realm", "stale", LEAST_BETWEEN_REALMS),
            ("REALM finds more than ORQA of equal compute, from a weaker start", "weak-realm", "weak-orqa", LEAST),
            (
                "salient spans find more than random spans, from a weaker start",
                "weak-realm",
                "weak-random-span",
                LEAST_BETWEEN_REALMS,
            ),
        )
        for depth in DEPTHS
    ),
    *(
        Claim(
            f"{statement}, from a weaker start, all questions",
            (f"{arm}.{ALL}", "recall@5"),
            (f"weak-realm.{ALL}", "recall@5"),
            LEAST_BETWEEN_REALMS,
        )
        for statement, arm in (
            ("candidates of other articles alone find more than REALM's", "weak-other"),
            ("a detached reader teaches more than REALM's loss", "weak-taught"),
            ("16 candidates find more than 6", "weak-more"),
            ("32 candidates in as much time find more than 6", "weak-many"),
            ("ICT's loss beside finds more than REALM's alone, in as much time", "weak-beside"),
            ("spans that blocks help with find more than all, in as much time", "weak-useful"),
        )
    ),
    *(
        Claim(
            f"{statement}, from a weaker start, all questions",
            (f"{arm}.{ALL}", "recall@5"),
            (f"{other}.{ALL}", "recall@5"),
            least,
        )
        for statement, arm, other, least in (
            ("REALM finds more than REPLUG of equal compute", "weak-realm", "weak-replug", LEAST),
            ("REALM finds more than Revela of equal compute", "weak-realm", "weak-revela", LEAST),
            ("Revela finds more than REPLUG of equal compute", "weak-revela", "weak-replug", LEAST_BETWEEN_REALMS),
            (
                "REALM's masked reader teaches more than a frozen causal one",
                "weak-realm",
                "weak-causal",
                LEAST_BETWEEN_REALMS,
            ),
            (
                "REALM with a frozen causal reader finds more than its start",
                "weak-causal",
                "weak-ict",
                LEAST_BETWEEN_REALMS,
            ),
            ("REPLUG finds more than its start", "weak-replug", "weak-ict", LEAST_BETWEEN_REALMS),
            ("Revela finds more than its start", "weak-revela", "weak-ict", LEAST_BETWEEN_REALMS),
        )
    ),
)
"""Those on one set were written before seeds 0 to 2 ran. Those on all questions were written after these, and before seeds 3 to 5;
those on recipes, on random spans from a weaker start, and on language models, before any of their runs."""

PAGE = """# REALM on whole articles

<!-- Generated by examples/wikipedia.sh: do not edit. -->
Does REALM pre-training find more than an inverse cloze task of equal compute, on articles that nobody here wrote, from an encoder that never saw a question?

## What holds

Recall before fine-tuning, all questions together, with 95 % intervals over seeds:

{summary}

## Recall before fine-tuning

Recall@5: the share of questions with an answer in one of the five best blocks. Questions whose answer is in none
of BM25's first 100 blocks are left out. SelQA's questions were asked about these articles. Those of the other sets were not: any block that holds the
words of an answer counts.

{recall}
{unmeasured}
{together}{sections}## How it was run

```bash
VARS="{variables}" \\
  ENCODER=FOLDER \\
  examples/wikipedia.sh FOLDER CORPUS nq=FILE webq=FILE trec=FILE selqa=FILE
```

- Seeds of ICT, ORQA and REALM: {seeds}. Results: [{name}]({beside}).
- realmctl {realmctl}; {processor}.
{notes}"""


def page(ledger: Ledger, beside: str, notes: str = "") -> str:
    """Return the page. `beside` is the path from the page's folder to the results; `notes` end it."""
    ledger = with_all_questions(ledger)
    outputs = [f"{arm}.{name}" for arm in ("ict", "orqa", "realm") for name in QUESTIONS]
    recall = [
        [label, *(cell(ledger, f"{arm}.{name}", "recall@5") for name in QUESTIONS)] for arm, label in ARMS.items()
    ]
    missing = "; ".join(row[0] for row in recall if row not in _measured(recall))
    return PAGE.format(
        summary=_what_holds(ledger),
        recall=table(["", *QUESTIONS.values()], _measured(recall)),
        unmeasured=f"\nNot measured yet: {missing}.\n" if missing else "",
        together=_together(ledger),
        sections=_claims(ledger) + _utility(ledger) + _weaker(ledger),
        name=Path(beside).name,
        beside=beside,
        notes=notes,
        variables=" \\\n  ".join(
            textwrap.wrap(
                " ".join(f"{name}={value}" for name, value in sorted(_main(ledger).variables.items())),
                76,
                break_long_words=False,
                break_on_hyphens=False,
            )
        ),
        **{key: value for key, value in circumstances(ledger, outputs).items() if key != "missing"},
    )


def with_all_questions(ledger: Ledger) -> Ledger:
    """The same measurements, and what each arm found over the questions of all sets together, for the seeds that have every set."""
    of_all = {arm: {depth: _of_all(ledger, arm, depth) for depth in DEPTHS} for arm in (*ARMS, *WEAKER)}
    whole = copy(ledger)
    whole.records = [
        *(
            Record(f"{arm}.{ALL}", seed, "", {depth: found[depth][seed] for depth in DEPTHS}, {}, {})
            for arm, found in of_all.items()
            for seed in found[DEPTHS[0]]
        ),
        *ledger.records,
    ]
    return whole


def _main(ledger: Ledger) -> Record:
    """The last record of an arm that is no other start's; of all, where there is no such arm."""
    mains = [record for record in ledger.records if record.output.partition(".")[0] in ARMS]
    return (mains or ledger.records)[-1]


def _measured(rows: list[list[str]]) -> list[list[str]]:
    """The rows in which something was measured."""
    return [row for row in rows if {*row[1:]} != {DASH}]


def _claims(ledger: Ledger) -> str:
    """The section of the claims; empty as long as none was measured."""
    measured = any(judged(claim, ledger)[1] != DASH for claim in CLAIMS)
    return f"## Every claim and its rule\n\n{verdicts(CLAIMS, ledger)}\n\n" if measured else ""


def _of_all(ledger: Ledger, arm: str, metric: str) -> dict[int, float]:
    """{seed: value} over the questions of all sets together, for the seeds that have every set."""
    sets = [ledger.newest(f"{arm}.{name}") for name in QUESTIONS]
    seeds = set.intersection(*(set(each) for each in sets))
    found = {}
    for seed in sorted(seeds):
        values = [each[seed].values for each in sets]
        asked = sum(each["questions"] for each in values)
        found[seed] = sum(each["questions"] * each[metric] for each in values) / asked
    return found


def _together(ledger: Ledger) -> str:
    """The section on the questions of all sets together; empty as long as ORQA was not measured."""
    base = {metric: _of_all(ledger, "orqa", metric) for metric in DEPTHS}
    rows = []
    for arm, label in ARMS.items():
        own = {metric: _of_all(ledger, arm, metric) for metric in DEPTHS}
        cells = []
        for metric in DEPTHS:
            over = difference(own[metric], base[metric]) if arm in AFTER_ICT and arm != "orqa" else None
            gain = f" ({signed(over.mean)} {interval(over)})" if over else ""
            cells.append(mean_and_sd(spread(own[metric])) + gain)
        rows.append([label, *cells])
    if not base["recall@5"]:
        return ""
    text = "## All questions together\n\nIn parentheses: minus ORQA of equal compute, with the 95 % interval over seeds.\n\n"
    return f"{text}{table(['', *DEPTHS], _measured(rows))}\n\n"


def _weaker(ledger: Ledger) -> str:
    """The section on the weaker start; empty as long as nothing was measured from it."""
    rows = [
        [
            label,
            *(mean_and_sd(spread(_of_all(ledger, arm, depth))) for depth in DEPTHS),
            minutes(ledger, f"{arm}.nq", (*SHARED, *WEAKER_SHARED, f"{arm}.nq")) if arm != "weak-ict" else DASH,
        ]
        for arm, label in WEAKER.items()
    ]
    if not (found := _measured(rows)):
        return ""
    run = next(record for record in reversed(ledger.records) if record.output.partition(".")[0] in WEAKER)
    settings = " ".join(f"{name}={value}" for name, value in sorted(run.variables.items()))
    seeds = len(_of_all(ledger, "weak-realm", DEPTHS[0]))
    return (
        "## From a weaker start\n\nThe encoder of the reader that has practised, with a new projection and ICT; all questions together, "
        f'{seeds} seed{"s" * (seeds != 1)}, on {run.made_with["processor"]}. `ARMS="{" ".join(WEAKER)}"`, `VARS="{settings}"`, and '
        "`READER_LM`, the folder of the language model.\n\n"
        "Minutes are of one core, with embeddings.\n\n"
        f"{table(['', *DEPTHS, 'minutes'], found)}\n\n"
    )


def _utility(ledger: Ledger) -> str:
    """The section of the utility; empty as long as none was measured."""
    rows = [
        [ARMS[arm], *(cell(ledger, f"{arm}.utility", metric) for metric in ("retrieval_utility", "top_1_utility"))]
        for arm in ("realm", "random", "stale")
    ]
    text = "## Utility\n\nNats a wordpiece over the null document, of sentences of the articles themselves.\n\n"
    found = _measured(rows)
    return f"{text}{table(['', 'retrieved candidates', 'first candidate'], found)}\n\n" if found else ""


COMPARED = {
    ("realm", "orqa"): "**REALM**, minus ORQA of equal compute",
    ("random", "orqa"): "**REALM with random masks**, minus ORQA of equal compute",
    ("realm", "random"): "**Salient spans**, minus random masks",
    ("realm", "stale"): "**A fresh index**, minus one that is never made anew",
    ("weak-realm", "weak-orqa"): "**REALM from a weaker start**, minus ORQA of equal compute",
    ("weak-realm", "weak-ict"): "**REALM from a weaker start**, minus that start",
    ("weak-realm", "weak-random-span"): "**Salient spans from a weaker start**, minus random spans",
    ("weak-causal", "weak-ict"): "**REALM with a frozen causal reader from a weaker start**, minus that start",
    ("weak-replug", "weak-ict"): "**REPLUG from a weaker start**, minus that start",
    ("weak-revela", "weak-ict"): "**Revela from a weaker start**, minus that start",
    ("weak-realm", "weak-revela"): "**REALM from a weaker start**, minus Revela of equal compute",
}
"""The lines of the summary."""


def _what_holds(ledger: Ledger) -> str:
    """Return what arms gain over one another on all questions, and how many claims are shown."""
    lines = []
    for (arm, other), label in COMPARED.items():
        gains = {depth: difference(_of_all(ledger, arm, depth), _of_all(ledger, other, depth)) for depth in DEPTHS}
        if seeds := [each.n for each in gains.values() if each]:
            told = ", ".join(f"{depth} {signed(each.mean)} {interval(each)}" for depth, each in gains.items() if each)
            lines.append(f"- {label}: {told}; {seeds[0]} seed{'s' * (seeds[0] > 1)}.")
    found = Counter(judged(claim, ledger)[0].strip("*").partition(":")[0] for claim in CLAIMS)
    counted = ", ".join(f"{count} {'is' if count == 1 else 'are'} {verdict}" for verdict, count in found.most_common())
    lines.append(
        f"- Of {len(CLAIMS)} claims that were written before their runs {counted} ([claims](#every-claim-and-its-rule))."
    )
    return "\n".join(lines)


def main() -> None:
    """Run the command line: write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--notes", type=Path, help="a Markdown file that ends the page")
    given = parser.parse_args()
    notes = f"\n{given.notes.read_text(encoding='utf-8')}" if given.notes else ""
    given.page.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(os.path.relpath(given.results, given.page.parent))
    given.page.write_text(page(Ledger(given.results), beside.as_posix(), notes), encoding="utf-8")
    print(given.page)


if __name__ == "__main__":
    main()
