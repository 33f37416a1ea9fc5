"""The job of docs/how-to/pipeline-file.md that fails on worse search: its file is run, and its table is what is printed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "pipeline-file.md"
WORDS = [
    "harbour",
    "lantern",
    "marble",
    "orchard",
    "pepper",
    "quarry",
    "ribbon",
    "saddle",
    "timber",
    "velvet",
    "walnut",
    "anchor",
    "barley",
    "copper",
]


def write_documents(changed: int) -> None:
    """30 pages of two words each. The second words of the first `changed` have become others."""
    Path("docs").mkdir(exist_ok=True)
    for number in range(30):
        first, second = WORDS[number % 14], WORDS[(3 * number + number // 14) % 14] if number >= changed else "pages"
        Path(f"docs/{number}.txt").write_text(
            f"The {first} stands here. It is made of {second}. Nothing else is said.\n"
        )


def test_the_job_passes_until_the_search_is_worse(realmctl):
    pytest.importorskip("ir_measures")
    page = PAGE.read_text()
    file = re.search(r"```yaml\n(# search\.yaml\n.*?)```", page, re.DOTALL)
    assert file and "realmctl run search.yaml" in page
    Path("search.yaml").write_text("defaults: {chunk: {workers: 1}}  # quicker here\n" + file[1])
    write_documents(changed=0)
    asked = [f"{WORDS[number % 14]} {WORDS[(3 * number + number // 14) % 14]}" for number in range(30)]
    lines = (json.dumps({"_id": f"q{number}", "text": text}) + "\n" for number, text in enumerate(asked))
    Path("questions.jsonl").write_text("".join(lines))
    judged = "".join(f"q{number}\t{number}.txt\t1\n" for number in range(30))
    Path("qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    code, _, err = realmctl("run", "search.yaml")
    assert code == 3 and "scores.baseline baseline: there is nothing" in err and not Path("artifacts").exists()
    first = "".join(
        line for line in Path("search.yaml").read_text().splitlines(keepends=True) if "baseline" not in line
    )
    Path("first.yaml").write_text(first)  # as the page says: "The first run is one without that line"
    code, _, err = realmctl("run", "first.yaml")
    assert code == 0, err
    shutil.copytree("artifacts/scores/v1", "baseline")
    assert realmctl("run", "search.yaml")[0] == 0
    write_documents(changed=12)
    for _ in range(2):  # and again, where all is made
        code, out, err = realmctl("run", "search.yaml")
        assert code == 6 and not out and "nDCG@10 is shown below baseline" in err, err
    assert open_artifact("artifacts/scores").metrics["nDCG@10"] < open_artifact("baseline").metrics["nDCG@10"]
    shown = re.search(r"```\n(baseline +measure.*?)```", page, re.DOTALL)
    printed = [line.rstrip() for line in err.splitlines() if line.startswith("baseline ")]
    assert shown and shown[1].splitlines() == printed, "\n".join(printed)
