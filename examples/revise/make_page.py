"""Turn the results of examples/revise.sh into a page: examples/revise/make_page.py RESULTS --seeds N --page FILE."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).resolve().parents[1] / "ablation"))

from dots import dots
from figure import save

Results = Sequence[dict[str, Any]]
ROWS = {
    "before": "before the change",
    "after": "**after: corpus, vectors and index revised**",
    "text_only": "control: new text, old vectors",
    "some_mentions": "control: the old statement stays, the new one is added",
    "closed_book": "control: closed book, no documents",
    "fine_tuned": "control: closed book, fine-tuned on the new answers",
}

PAGE = """# A memory that can be edited

<!-- Generated: do not edit. -->
Do answers follow when documents are edited? A model is trained once. Then facts are changed in its corpus, and in nothing else. The
corpus is revised, only the changed blocks are embedded, and the same weights answer. The page is for those whose documents change
([how to revise them](../../how-to/changing-corpus.md)).

## What holds

In a generated world the answers follow, without training. Exact match (EM) on questions about changed facts, before and after the corpus was revised:

{claims}

![Exact match on the new answers, where {smallest} of the facts changed](em.svg)

Exact match on the new answers, where {smallest} of the facts changed: a small dot for each seed, the mean, and its 95 % interval over seeds.

## Answers

"new" and "old" are EM on questions about changed facts, with their new and their old answers. "unchanged" is EM on facts that did
not change.

{answers}

The controls:

- **New text, old vectors.** The blocks hold the new values, and the search still uses the vectors that they had before. {stale}
- **The old statement stays.** The documents of the old corpus stay, and one more document for each changed fact states the new value. The
  corpus then contradicts itself.
- **Closed book.** The reader of the pre-trained model is fine-tuned on the training questions without documents (300 steps).
- **Fine-tuned on the new answers.** The closed-book model is trained on the very questions that are asked, with the new answers, for 300
  steps ({tuning} seconds). This favours it: the test questions are its training questions. The number
  of steps is the same for every share, so each question is seen less often where more facts change.

## Cost

Seconds include loading the retriever and writing the artifacts. A revision is `revise`, `embed --former` and `build-index`; a
rebuild is `chunk`, `embed` and `build-index`. Both take no gradient step.

{costs}

The world is small: {blocks} short blocks are embedded within seconds. The share of blocks that are embedded again says what to expect of
a large corpus; the seconds of this one do not.

## Equal to a rebuild

{equality}

The test `tests/stages/test_revise.py` draws sequences of edits at random and compares them with a rebuild, byte for byte.

## How it was run

```bash
make revise SEEDS={seeds}
```

- Worlds: `examples/world`, size demo; seeds: {seed_list}. Each has {facts} facts in {blocks} blocks.
- Chain: like that of `make demo` (`examples/revise.yaml`): two layers of width 128, REALM pre-training of 320 steps, 300 steps of
  fine-tuning of the reader. The index is exact.
- Change: 1, 5 or 20 % of all facts get another value (`examples/world/change_facts.py`). Facts with a training question are not
  changed. A document that states no changed fact stays byte for byte what it was.
- Questions: up to 500 about changed facts, and 500 about facts that did not change.
- Every number is the mean ± sample standard deviation over the seeds. EM is exact match, from 0 to 1.
- `make revise` generates this page from the results of each seed: {links}.
- Machine: {machine}. The processes shared it with other work, so seconds are rough.
"""


def read(folder: Path, seeds: int) -> Results:
    """Read seed-0.json, seed-1.json, ... Exits with one line if one is missing."""
    paths = [folder / f"seed-{seed}.json" for seed in range(seeds)]
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise SystemExit(f"make_page: {', '.join(missing)} is missing. Run examples/revise.sh first.")
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def page(results: Results, beside: str) -> str:
    """Return the page. `beside` is the path from the page's folder to the results."""
    shares = list(results[0]["shares"])
    first = results[0]["shares"][shares[0]]
    return PAGE.format(
        claims=_claims(results, shares),
        smallest=_percent(shares[0]),
        seeds=len(results),
        seed_list=", ".join(str(run["seed"]) for run in results),
        facts=f"{first['facts']:,}",
        blocks=f"{first['revision']['rows']:,}",
        links=", ".join(f"[seed {run['seed']}]({beside}/seed-{run['seed']}.json)" for run in results),
        machine=", ".join(sorted({_machine(run["machine"]) for run in results})),
        costs=_costs(results, shares),
        answers="\n\n".join(_answers(results, share) for share in shares),
        stale=_stale(results, shares),
        tuning=_spread(
            [run["shares"][share]["seconds_of_training"]["fine_tuned"] for run in results for share in shares], 0
        ),
        equality=_equality(results, shares),
    )


def _claims(results: Results, shares: Sequence[str]) -> str:
    rows = []
    for share in shares:
        entries = [run["shares"][share] for run in results]
        embedded = _spread([100 * e["revision"]["embedded"] / e["revision"]["rows"] for e in entries], 1)
        em = [
            " → ".join(_spread([e["em"][row][key] for e in entries]) for row in ("before", "after"))
            for key in ("new", "old", "unchanged")
        ]
        rows.append([_percent(share), f"{embedded} %", *em])
    header = ["facts changed", "blocks embedded again", "EM, new answers", "EM, old answers", "EM, unchanged facts"]
    lines = [_table(header, rows) + "\n"]
    weights = all(run["weights_unchanged"] for run in results)
    lines.append(
        f"- **No training**: the content hashes of the model and of the qa-model were computed again from their files at the end, and "
        f"were {'the same' if weights else '**not the same**'} in every seed."
    )
    back = [run["shares"][share]["back"] for run in results for share in shares]
    lines.append(
        f"- **Undone**: after the edits were taken back, the blocks had their first content hash in {sum(b['same_blocks'] for b in back)} of {len(back)} "
        f"runs, and {100 * fmean(b['same_answers'] for b in back):.2f} % of the answers were the first ones."
    )
    return "\n".join(lines)


def _costs(results: Results, shares: Sequence[str]) -> str:
    rows = []
    for share in shares:
        entries = [run["shares"][share] for run in results]
        revision = [sum(e["revision"][key] for key in ("revise", "embed", "build_index")) for e in entries]
        rebuild = [sum(e["rebuild"].values()) for e in entries]
        rows.append(
            [
                _percent(share),
                f"{fmean(e['changed'] for e in entries):,.0f}",
                f"{_spread([e['revision']['embedded'] for e in entries], 0)} of {entries[0]['revision']['rows']:,}",
                _spread([e["revision"]["embed"] for e in entries], 2),
                _spread([e["rebuild"]["embed"] for e in entries], 2),
                _spread(revision, 2),
                _spread(rebuild, 2),
            ]
        )
    header = [
        "facts changed",
        "number",
        "blocks embedded",
        "`embed --former`, s",
        "`embed`, s",
        "whole revision, s",
        "whole rebuild, s",
    ]
    return _table(header, rows)


def _answers(results: Results, share: str) -> str:
    entries = [run["shares"][share] for run in results]
    rows = [
        [label, *(_spread([e["em"][row][key] for e in entries]) for key in ("new", "old", "unchanged"))]
        for row, label in ROWS.items()
    ]
    asked = f"{_percent(share)} of the facts, {min(e['asked'] for e in entries)} questions about them in each seed:"
    return f"{asked}\n\n{_table(['', 'new', 'old', 'unchanged'], rows)}"


def _stale(results: Results, shares: Sequence[str]) -> str:
    differences = [
        run["shares"][share]["em"]["after"]["new"] - run["shares"][share]["em"]["text_only"]["new"]
        for run in results
        for share in shares
    ]
    return (
        f"EM on the new answers with the new vectors minus that with the old ones was {_spread(differences)} over all runs: a changed value "
        "moves the vector of a block little, because the question names the subject and not the value."
        if abs(fmean(differences)) < 0.02
        else f"EM on the new answers with the new vectors minus that with the old ones was {_spread(differences)} over all runs."
    )


def _equality(results: Results, shares: Sequence[str]) -> str:
    runs = [run["shares"][share] for run in results for share in shares]
    difference = max(run["largest_vector_difference"] for run in runs)
    component = max(run["largest_vector_component"] for run in runs)
    return (
        f"- Blocks: the same content hash as `chunk` of the new corpus in {sum(r['same_blocks'] for r in runs)} of {len(runs)} runs.\n"
        f"- Vectors: the largest difference of a component was {difference:.1e}, where components reach {component:.1f}. It is rounding: "
        "a rebuild puts other blocks into a batch. With `--batch-size 1` there is no difference.\n"
        f"- Answers: {100 * fmean(r['same_answers_as_rebuild'] for r in runs):.2f} % were those of the rebuild."
    )


def figure(results: Results) -> Figure:
    """Draw exact match on the new answers for each row of the table, where the fewest facts changed."""
    share = next(iter(results[0]["shares"]))
    em = [run["shares"][share]["em"] for run in results]
    named = {row: label.replace("**", "") for row, label in ROWS.items()}
    return dots(
        {label: [each[row]["new"] for each in em] for row, label in named.items()},
        "exact match, new answers",
        [named["after"]],
    )


def _percent(share: str) -> str:
    return f"{100 * float(share):g} %"


def _spread(values: Sequence[float], digits: int = 3) -> str:
    shown: Callable[[float], str] = lambda value: f"{value:.{digits}f}"  # noqa: E731
    return shown(fmean(values)) + (f" ± {shown(stdev(values))}" if len(values) > 1 else "")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _machine(found: dict[str, Any]) -> str:
    return f"{found['processor']}, {found['cores']} cores, one thread"


def main() -> None:
    """Run the command line: write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--page", type=Path, required=True)
    given = parser.parse_args()
    given.page.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(os.path.relpath(given.results, given.page.parent)).as_posix()
    results = read(given.results, given.seeds)
    given.page.write_text(page(results, beside), encoding="utf-8")
    save(figure(results), given.page.with_name("em.svg"))
    print(given.page)


if __name__ == "__main__":
    main()
