"""The page in Markdown: the claims, the variants (arms), the grid, staleness, utility, limits, and how it was run."""

from collections.abc import Sequence

from arms import ARMS, BM25, BY_KEY, CLOSED_BOOK, ORQA, REALM, STRANGERS, Arm
from claims import RULE, Tests, claims, verdict
from collapses import collapses_table, counted
from grid import Grid
from limits import LIMITS
from notation import DASH, interval, listed, mean_and_sd, number, signed, table
from results import Runs
from spread import difference, spread
from tuning import costs_table, grid_table, staleness_table

HEADER = (
    "variant",
    "learning rate",
    "seeds",
    "EM",
    "R@1",
    "R@5",
    "EM: REALM - variant",
    "seeds for",
    "against",
    "REALM ahead?",
    "paper: EM",
    "paper: R@5",
)
LEGEND = f"""\
EM is exact match on test questions. R@k is the share of these questions with an answer in one of the k best blocks. Both are between 0
and 1. Numbers are mean ± standard deviation over the seeds. `{DASH}` means not measured.

- **Fine-tuning** trains the reader alone (`--freeze-retriever`), so that EM and R@k show what pre-training was worth. In the two rows
  "tuned jointly" it trains the retriever too.
- **REALM - variant** is paired by seed, with its 95 % interval (Student's t, one degree of freedom less than seeds). The next columns
  count the seeds for and against REALM.
- **The paper's columns** are from its table 2 (arXiv 2002.08909): Natural Questions, dev split, R@5 before fine-tuning."""


def results(runs: Runs, grid: Grid) -> str:
    """Return the part that is also printed on the terminal: the claims and the arms."""
    tests = Tests(runs, grid)
    return f"{claims_table(tests)}\n\n{arms_table(tests)}\n"


def page(runs: Runs, grid: Grid, command: str, plots: Sequence[tuple[str, str]]) -> str:
    """Return the page. `plots` are links and captions."""
    tests = Tests(runs, grid)
    return f"""\
# REALM's ablations on a generated world

<!-- Generated: do not edit. -->
Which parts of REALM matter? Each variant below leaves out or changes one part. All were tuned alike, with models that train in minutes, in
a generated world whose facts are known. The page is for those who choose the settings of pre-training, or compare with the paper's
table 2.

## What holds

{main_scores(tests)}

{_plots(plots[:1])}

Each line has a difference of exact match unless it names another measure, with its 95 % interval over seeds.
[Every claim and its rule](#every-claim-and-its-rule) says what *shown* means. *Strangers* are people of whom no block tells. X are the sentences of
pre-training, and Z the blocks to retrieve from.

{verdicts(tests)}

## Every variant on the test seeds

{arms_table(tests)}

{LEGEND}

What differs from REALM:

{_legend_of_arms()}

{_plots(plots[1:])}

## Every claim and its rule

{RULE} The rule is the same for claims that favour REALM and for claims that do not. The runs are those on the test seeds
({_seeds(grid, "test")}), each variant with the learning rate that its runs on the dev seeds ({_seeds(grid, "dev")}) chose.

{claims_table(tests)}

## How every variant was tuned

Every variant has the same three learning rates at first, on the same dev seeds, as [grid.yaml](../../../examples/ablation/grid.yaml) says. While the
best rate of a variant is its lowest or its highest, the next one is tried too. The numbers are EM on dev questions: the mean, and in brackets each seed.
The best mean, in bold, chose the rate for the test seeds.

{grid_table(runs, grid)}

## Staleness

These are the dev runs of REALM and of the variants with a stale index. Drift is 1 minus the mean cosine between the old and the new embedding of a block
when the index is replaced, and overlap is the share of the old index's candidates that the new one finds too
([index refresh](../../refresh.md)). Both are means over all replacements of a run, the one by the published index included.

{staleness_table(runs, grid)}

What an older index costs: recall@5 minus that of the freshest index with the same rate and seed. The bounds were chosen in view of these runs.

{costs_table(runs, grid)}

## Runs that collapsed

A run has collapsed if it ends with at most half of the recall@5 that its start had on dev questions. {counted(runs)} The table counts dev and test
runs, and in how many of them each [alarm](../../refresh.md#alarms) was raised. Variants and rates without a collapse and without an alarm are left out.

{collapses_table(runs)}

## Retrieval utility on sentences that no stage trained on

{utility_table(tests)}

Utility says by how much the candidates together raise the log-probability of a hidden wordpiece, compared with the null
document. Top 1 utility says by how much the best block alone raises the log-probability of all hidden wordpieces of a
sentence. Both are in nats, and 0 means that retrieval is worth nothing. Null share is the null document's share of p(z|x).

## Limits

{LIMITS}

## Exact match of every test seed

{seeds_table(tests)}

## How it was run

`{command}` generates this page from [the results of the runs](runs.jsonl) alone. Only the paper's numbers were typed in.
{_progress(runs, grid)}

{_circumstances(runs)}
"""


def main_scores(tests: Tests) -> str:
    """Return a sentence with the exact match of the main variants."""
    said = {
        REALM: "REALM",
        BM25: "BM25 with the same reader",
        ORQA: "ORQA (no pre-training)",
        CLOSED_BOOK: "closed book",
    }
    means = {label: spread(tests.by_seed(arm, "em")) for arm, label in said.items()}
    known = [f"{label} {number(found.mean)}" for label, found in means.items() if found]
    return f"**Exact match**, mean over the test seeds: {', '.join(known)}." if known else "Nothing was measured yet."


def verdicts(tests: Tests) -> str:
    """Return the claims below their verdicts, with their differences."""
    lines = []
    for claim in claims(tests):
        other = "" if claim.compared.startswith("EM, ") else f" ({claim.compared})"
        size = f": {signed(claim.found.mean)} {interval(claim.found)}" if claim.found else ""
        lines.append((claim.verdict, f"{claim.statement}{size}{other}."))
    return listed(lines)


def claims_table(tests: Tests) -> str:
    """Return a row for each claim, with the same columns whatever the verdict is."""
    rows = []
    for claim in claims(tests):
        found = claim.found
        numbers = (
            [f"{signed(found.mean)} {interval(found)}", str(found.positive), str(found.negative)]
            if found
            else [DASH] * 3
        )
        rows.append([claim.statement, claim.compared, *numbers, f"**{claim.verdict}**"])
    return table(["claim", "difference", "mean and 95 % interval", "seeds for", "seeds against", "verdict"], rows)


def arms_table(tests: Tests) -> str:
    """Return a table with a row for each arm."""
    return table(HEADER, [_row(tests, arm) for arm in ARMS])


def _row(tests: Tests, arm: Arm) -> list[str]:
    em = tests.by_seed(arm, "em")
    recalls = [mean_and_sd(spread(tests.by_seed(arm, metric)), len(em)) for metric in ("recall@1", "recall@5")]
    found = difference(tests.by_seed(REALM, "em"), em) if arm != REALM else None
    behind = (
        [f"{signed(found.mean)} {interval(found)}", str(found.positive), str(found.negative), verdict(found)]
        if found
        else [DASH] * 4
    )
    paper = [number(value / 100) for value in (arm.paper.em, arm.paper.recall_5)] if arm.paper else [DASH, DASH]
    return [arm.label, tests.rates[arm.key] or DASH, str(len(em)), mean_and_sd(spread(em)), *recalls, *behind, *paper]


def seeds_table(tests: Tests) -> str:
    """Return a table of exact match with a column for each test seed."""
    seeds = tests.grid.seeds["test"]
    columns = {arm: tests.by_seed(arm, "em") for arm in ARMS}
    return table(
        ["variant", *(f"seed {seed}" for seed in seeds)],
        [[arm.label, *(number(column.get(seed)) for seed in seeds)] for arm, column in columns.items()],
    )


def utility_table(tests: Tests) -> str:
    """Return a table of the retrieval utility on held-out sentences, and on sentences that no block helps with."""
    measured = [(BY_KEY["orqa-short"], "start"), (REALM, REALM.label), *((arm, arm.label) for arm, _ in STRANGERS)]
    rows = []
    for arm, label in measured:
        for sentences, _ in arm.utilities:
            metrics = ("top_1_utility", "retrieval_utility", "null_share")
            found = [spread(tests.by_seed(arm, metric, "utility", sentences)) for metric in metrics]
            n = found[0].n if found[0] else 0
            rows.append([label, sentences, str(n), *(mean_and_sd(each, n) for each in found)])
    return table(["pre-trained", "sentences", "n", "top 1 utility", "utility", "null share"], rows)


def _progress(runs: Runs, grid: Grid) -> str:
    """Say how many of the planned runs are there."""
    dev = sum(
        run.arm.key in {key[1] for key in runs.lines if key[0] == "dev" and key[2:] == (run.rate, run.seed)}
        for run in grid.dev_runs(runs)
    )
    test = sum(("test", run.arm.key, run.rate, run.seed) in runs.lines for run in grid.test_runs(runs))
    planned = len(list(grid.dev_runs(runs))), len(ARMS) * len(grid.seeds["test"])
    return f"It has {dev} of {planned[0]} planned runs on dev seeds and {test} of {planned[1]} on test seeds."


def _seeds(grid: Grid, split: str) -> str:
    return ", ".join(map(str, grid.seeds[split]))


def _legend_of_arms() -> str:
    return "\n".join(f"- {arm.label}: {arm.differs}" for arm in ARMS if arm != REALM)


def _plots(plots: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(f"![{caption}]({link})\n\n{caption}." for link, caption in plots)


def _circumstances(runs: Runs) -> str:
    lines = list(runs.lines.values())
    if not lines:
        return "Nothing has run yet."
    made = sorted({", ".join(f"{name} {number}" for name, number in line["versions"].items()) for line in lines})
    minutes = sum(line["cpu_seconds"] for line in lines) / 60
    return f"""\
- Runs: {len(lines)}. Together they took {minutes:.0f} minutes of processor time on one thread, without worlds and copy pre-training.
  The start of a seed counts for the first run that needs it. Of a run that was interrupted, only the last part counts.
- Versions: {"; ".join(made)}
- Processors: {", ".join(sorted({line["cpu"] for line in lines}))}
- From {min(line["time"] for line in lines)} to {max(line["time"] for line in lines)}"""
