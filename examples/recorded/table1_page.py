"""Write the page on REALM's table 1 from the file of results.

    python examples/recorded/table1_page.py RUNS.jsonl --tuning TUNING.jsonl --page PAGE.md

The claims and their rules were written down before the runs.
"""

from choose_rates import STARTS_PLAN, read_plan, tuning_table
from judged import (
    DASH,
    Claim,
    cell,
    circumstances,
    minutes,
    ranking,
    rows_of_dots,
    summary,
    table,
    verdicts,
    write_page,
)
from ledger import Ledger
from matplotlib.figure import Figure
from starts_page import SHARED, WORLD

ROWS = {
    "closed-book": ("closed book, BERT", "26.5/17.7/21.3"),
    "t5": ("closed book, a small T5", "27.0/29.1/– (base), 29.8/32.2/– (large), 34.5/37.4/– (11B)"),
    "t5-ssm": ("closed book, a small T5, salient spans first", "36.6/44.7/– (11B, Roberts et al. 2020)"),
    "gpt2": ("closed book, a small GPT-2", "4.1/–/– (Brown et al. 2020)"),
    "bm25": ("BM25 and a reader (DrQA's kind)", "–/20.7/25.7"),
    "orqa": ("ORQA", "33.3/36.4/30.1"),
    "realm": ("REALM, X = other sentences", "40.4/40.7/42.9 (X = CC-News)"),
    "realm-same": ("REALM, X = Z", "39.2/40.2/46.8 (X = Wikipedia)"),
}
QUOTED = (("Hard EM", "28.1/–/–"), ("GraphRetriever", "31.8/31.6/–"), ("PathRetriever", "32.6/–/–"))

CLAIMS = (
    Claim("ORQA beats a closed-book BERT", ("table1.orqa", "em"), ("table1.closed-book", "em"), 0.02),
    Claim("ORQA beats a closed-book T5", ("table1.orqa", "em"), ("table1.t5", "em"), 0.02),
    Claim("ORQA beats BM25 and a reader", ("table1.orqa", "em"), ("table1.bm25", "em"), 0.02),
    Claim("REALM beats ORQA", ("table1.realm", "em"), ("table1.orqa", "em"), 0.02),
    Claim("REALM with X = Z beats ORQA", ("table1.realm-same", "em"), ("table1.orqa", "em"), 0.02),
    Claim("Pre-training on salient spans helps a small T5", ("table1.t5-ssm", "em"), ("table1.t5", "em"), 0.02),
    Claim(
        "REALM's reader with retrieval fills spans better than a kNN-LM",
        ("table1.realm-spans", "log_prob"),
        ("table1.knn-lm", "log_prob"),
        0.1,
    ),
)

PAGE = """# REALM's table 1, as far as it runs here

<!-- Generated: do not edit. -->
Do the rows of the paper's table 1 come in the paper's order? Each row that can run on a laptop was run on generated worlds, with models of two
layers of width 128. The paper's numbers are of other data and of far larger models, so only the order of the rows can be compared.
`make table1` generates this page from [its runs](runs.jsonl).

## What holds

**Exact match**, mean over the seeds, the five best rows: {best}.

![Exact match of every row](em.svg)

Exact match of every row on the test questions: a small dot for each seed, the mean, and its 95 % interval over seeds.

{summary}

## Exact match

EM is exact match on {questions} test questions, from 0 to 1. No question's fact was trained on, so a model without documents has to guess.
R@5 is the share of questions with an answer in one of the 5 best blocks. Minutes are of one core, without those of the encoder that all share. The
paper's column is in per cent: Natural Questions, WebQuestions, CuratedTREC. X are the sentences of pre-training, and Z the blocks to
retrieve from. A dash is what was not run or not reported.

{rows}

## Hidden spans of held-out sentences

A kNN-LM fills masked spans and answers no questions, so it has no row above. It stands beside REALM's reader, on the same spans; the
log-probability is in nats a wordpiece.

{spans}

## Every claim and its rule

{verdicts}

## How the rows were tuned

Learning rates were chosen on two dev seeds with dev questions, by the rule of `examples/recorded/starts-rates.yaml`. The numbers are the mean, and in
brackets each seed. The chosen rate is bold. The closed-book rows were not tuned: they have a rate of 1e-3.

{tuning}

## How it was run

```bash
make table1
```

- Complete seeds: {seeds}. Each seed has its own generated world ({world}). Measurements that are missing for a seed: {missing}.
- All BERTs start from one encoder, which comes from copy pre-training on other worlds. The small T5 and GPT-2 start from random weights
  (`examples/recorded/small_language_models.py`). Closed-book models of this size know no facts, whatever their kind.
- The steps of fine-tuning are the same for all rows with a BERT. Settings: `examples/starts.yaml`.
- GraphRetriever and PathRetriever are quoted, not built. Hard EM (Min et al. 2019) was built and is quoted now: over BM25's blocks it had .440, and the sum over all mentions .447 (-.007 [-.043, +.029]), so it left.
- realmctl {realmctl}; {processor}. Numbers are mean ± sample standard deviation over the seeds; a dash is what was not run.
"""


def page(ledger: Ledger, tuned: Ledger) -> str:
    """Return the page. `tuned`: the measurements on the dev seeds."""
    outputs = [f"table1.{row}" for row in (*ROWS, "knn-lm", "realm-spans")]
    asked = sorted({int(record.values["questions"]) for record in ledger.newest("table1.bm25").values()})
    return PAGE.format(
        best=ranking(ledger, {label: f"table1.{row}" for row, (label, _) in ROWS.items()}, "em", most=5),
        summary=summary(CLAIMS, ledger),
        verdicts=verdicts(CLAIMS, ledger),
        questions=", ".join(map(str, asked)) or "no",
        rows=_rows(ledger),
        spans=_spans(ledger),
        tuning=tuning_table(tuned, read_plan(STARTS_PLAN), ["ict.", "table1."]),
        world=WORLD,
        **circumstances(ledger, outputs),
    )


def _rows(ledger: Ledger) -> str:
    rows = []
    for row, (label, paper) in ROWS.items():
        output = f"table1.{row}"
        measured = [cell(ledger, output, metric) for metric in ("em", "recall@5")]
        rows.append([label, *measured, minutes(ledger, output, SHARED), paper])
    quoted = [[label, DASH, DASH, DASH, paper] for label, paper in QUOTED]
    return table(["system", "EM", "R@5", "minutes", "paper: NQ/WQ/CT"], [*rows, *quoted])


def _spans(ledger: Ledger) -> str:
    rows = [
        ["masked language model alone", cell(ledger, "table1.knn-lm", "lm_log_prob")],
        ["kNN-LM", cell(ledger, "table1.knn-lm", "log_prob")],
        ["REALM's reader with retrieval", cell(ledger, "table1.realm-spans", "log_prob")],
    ]
    return table(["model", "log-probability"], rows)


def figure(ledger: Ledger) -> Figure:
    """Draw the exact match of each row that was run."""
    rows = {label: f"table1.{row}" for row, (label, _) in ROWS.items()}
    return rows_of_dots(ledger, rows, "em", [label for label in rows if label.startswith("REALM")])


def main() -> None:
    """Run the command line: write the page."""
    write_page(page, __doc__, "em.svg", figure)


if __name__ == "__main__":
    main()
