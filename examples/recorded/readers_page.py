"""Write the page on readers of pre-training from the file of results.

    python examples/recorded/readers_page.py RUNS.jsonl --tuning TUNING.jsonl --page PAGE.md

The claims and their rules were written down before the test seeds were run.
"""

from choose_rates import READERS_PLAN, read_plan, tuning_table
from judged import Claim, cell, circumstances, minutes, summary, table, verdicts, write_page
from ledger import Ledger
from starts_page import WORLD

ARMS = {
    "masked-trained-marginal": "BERT, trained, marginal (REALM)",
    "masked-frozen-marginal": "BERT, frozen, marginal",
    "causal-trained-marginal": "causal, trained, marginal",
    "causal-trained-distill": "causal, trained, distill",
    "causal-frozen-marginal": "causal, frozen, marginal",
    "causal-frozen-distill": "causal, frozen, distill",
}
READING = {"masked": "BERT", "causal": "causal"}
RECALLS = ("recall@1", "recall@5", "recall@20")
SHARED = (
    *("vocabulary", "practice-blocks", "practice-texts", "practice-spans", "encoder", "masked", "causal"),
    *("blocks", "sentences", "spans", "retriever", "embeddings", "index"),
)


def _claim(statement: str, first: str, second: str, metric: str) -> Claim:
    return Claim(f"{statement} ({metric})", (first, metric), (second, metric), 0.02)


CLAIMS = (
    *(
        _claim(f"{ARMS[arm]}: the retriever gains over its ICT start", f"{arm}.realm", "ict.start", metric)
        for arm in ARMS
        for metric in ("recall@1", "recall@5")
    ),
    *(
        _claim(statement, f"{first}.realm", f"{second}.realm", "recall@5")
        for statement, first, second in (
            (
                "BERT teaches more than the causal reader, both trained",
                "masked-trained-marginal",
                "causal-trained-marginal",
            ),
            (
                "BERT teaches more than the causal reader, both frozen",
                "masked-frozen-marginal",
                "causal-frozen-marginal",
            ),
            (
                "distill teaches more than marginal, causal and frozen",
                "causal-frozen-distill",
                "causal-frozen-marginal",
            ),
            (
                "distill teaches more than marginal, causal and trained",
                "causal-trained-distill",
                "causal-trained-marginal",
            ),
            (
                "a trained causal reader teaches more than a frozen one, marginal",
                "causal-trained-marginal",
                "causal-frozen-marginal",
            ),
            (
                "a trained causal reader teaches more than a frozen one, distill",
                "causal-trained-distill",
                "causal-frozen-distill",
            ),
        )
    ),
)

PAGE = """# Readers of pre-training

{summary}

<!-- Generated: do not edit. -->
REALM's reader is a BERT that fills masks. `pretrain --reader-lm` puts [a language model](../how-to/language-model-reader.md) in its place. Which reader
teaches a retriever more, in the same time and from the same start? `make readers` generates this page from [its runs](readers/runs.jsonl).

## Recall before fine-tuning

R@k is the share of {questions} test questions with an answer in one of the k best blocks. Nothing was trained on questions. Every arm starts from the
retriever of the first row and has the same time: minutes are of one core, for pre-training and the measurement.

{arms}

## What the readers make of blocks

Measured with the retriever at its start, on held-out sentences: by how much a block raises the log-probability of what is hidden, in nats for each of
the reader's tokens. A BERT reads the whole sentence with masks. A causal model reads it up to the span, so it has less to go by. The last column is
the share of pairs in which a block that tells the span gains more than one that does not: what the retriever can learn.

{reading}

## Every claim and its rule

{verdicts}

## How the arms were tuned

{tuning}

The steps of an arm were set before, from the time of a step. Temperature and length normalisation of distill are the defaults.

## How it was run

```bash
make readers
```

- Complete seeds: {seeds}. Each seed has its own generated world ({world}). Measurements that are missing for a seed: {missing}.
- Both readers have two layers of width 128 and practised on other worlds, where each sentence stands behind a block that restates it: the BERT by
  `mlm-init --spans`, the GPT-2, from random weights, by `lm-init --blocks`. They are the same for all seeds. So the spread does not contain their luck.
- Settings: `examples/readers.yaml`.
- realmctl {realmctl}; {processor}. Numbers are mean ± sample standard deviation over the seeds; a dash is what was not run.
"""


TUNED = """Every arm has one learning rate, chosen on a dev seed with dev questions, by the rule of `examples/recorded/readers-rates.yaml`. The chosen rate is
bold.

"""
NOT_TUNED = """No arm was tuned: every arm has the same learning rate. `make readers TUNE=1` runs the grid of
`examples/recorded/readers-rates.yaml`, which gives every arm the same rates."""


def page(ledger: Ledger, tuned: Ledger) -> str:
    """Return the page. `tuned`: the measurements on the dev seeds."""
    outputs = ["ict.start", *(f"{arm}.realm" for arm in ARMS), *(f"{reader}.reading" for reader in READING)]
    asked = sorted({int(record.values["questions"]) for record in ledger.newest("ict.start").values()})
    starts = [("ICT, the start", "ict.start"), *((label, f"{arm}.realm") for arm, label in ARMS.items())]
    return PAGE.format(
        summary=summary(CLAIMS, ledger),
        verdicts=verdicts(CLAIMS, ledger),
        questions=", ".join(map(str, asked)) or "no",
        arms=table(
            ["reader, loss", "R@1", "R@5", "R@20", "minutes"],
            [
                [label, *(cell(ledger, output, metric) for metric in RECALLS), minutes(ledger, output, SHARED)]
                for label, output in starts
            ],
        ),
        reading=table(
            ["reader", "the sentence's own block", "another that tells", "a random one", "tells gains more"],
            [
                [label, *(cell(ledger, f"{reader}.reading", name) for name in READINGS)]
                for reader, label in READING.items()
            ],
        ),
        tuning=TUNED + tuning_table(tuned, read_plan(READERS_PLAN)) if tuned.records else NOT_TUNED,
        world=WORLD,
        **circumstances(ledger, outputs),
    )


READINGS = ("own_utility", "told_utility", "random_utility", "gain_auc")


def main() -> None:
    """Run the command line: write the page."""
    write_page(page, __doc__)


if __name__ == "__main__":
    main()
