"""examples/restated.py: what of a sentence stands in blocks other than its own."""

import json
import subprocess
import sys
from pathlib import Path

from realmctl.artifacts import open_artifact
from realmctl.artifacts.records import Records
from stages.chunk import Chunk
from stages.tag import Tag

PROGRAM = Path(__file__).parents[2] / "examples" / "restated.py"
CORPUS = {
    "Ada": "It was in London that Ada Lovelace met Tom Bell in 1833. There she wrote to Mary Somer.",
    "Bell": "He was a friend of ada lovelace, said Tom Bell, and of Mary Somerville.",
    "Tea": "The tea came to London, 18330 chests of it.",
}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True)


def test_own_block_does_not_count_and_words_are_compared_whole(tmp_path: Path) -> None:
    corpora = {"blocks": CORPUS, "texts": {"Ada": CORPUS["Ada"]}}
    for name, documents in corpora.items():
        lines = [json.dumps({"id": title, "title": title, "text": text}) for title, text in documents.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        Chunk(corpus=(tmp_path / f"{name}.jsonl",), tokenizer="train:300", workers=1).make(tmp_path / name)
    spans = Tag(blocks=open_artifact(tmp_path / "texts"), tagger="auto").make(tmp_path / "spans")
    sentences = Records(spans.file("sentences.jsonl.zst"))
    assert [[s["text"][a:b] for a, b, _ in s["spans"]] for s in sentences] == [
        ["London", "Ada Lovelace", "Tom Bell", "1833"],
        ["Mary Somer"],
    ]

    assert run(tmp_path / "spans", tmp_path / "blocks").stdout.splitlines() == [
        "spans that stand in another block: 3 of 5 (60.0%)",
        "spans that stand in another document: 3 of 5 (60.0%)",
        "sentences of two spans or more, two of which stand in one other block: 1 of 1 (100.0%)",
    ]
    alone = run(tmp_path / "spans", tmp_path / "texts", "--sentences", "1")
    assert " 0 of " in alone.stdout and alone.stdout.count("(0.0%)") == len(alone.stdout.splitlines())


def test_what_is_no_artifact_is_named_in_a_line(tmp_path: Path) -> None:
    refused = run(tmp_path / "nowhere", tmp_path)
    assert refused.returncode == 1
    assert run(tmp_path, tmp_path, "--sentences", "0").returncode == 2
    assert "nowhere" in refused.stderr and "Traceback" not in refused.stderr and refused.stderr.count("\n") == 1
