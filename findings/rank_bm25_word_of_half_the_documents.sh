#!/usr/bin/env bash
# rank-bm25 0.2.2.
# Expected: of two documents the one that holds the query's only word has the higher score.
# Seen: BM25Okapi gives both 0: its weight of a word in half of the documents is log(1) = 0, and one in more of them gets a quarter of the mean weight,
# which is negative in a small corpus: there documents without the word come first. BM25Plus and Lucene's form have no such words.
# This fails when the document with the word wins.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install rank-bm25==0.2.2
cd "$folder"
venv/bin/python - <<'PYTHON'
from rank_bm25 import BM25Okapi, BM25Plus

half = [["cat", "sat"], ["dog", "sat"]]
print(BM25Okapi(half).get_scores(["cat"]), BM25Plus(half).get_scores(["cat"]))
assert BM25Okapi(half).get_scores(["cat"]).tolist() == [0, 0]
assert BM25Plus(half).get_scores(["cat"])[0] > BM25Plus(half).get_scores(["cat"])[1]
most = [["ship"], ["ship"], ["sea"], ["sea", "ship"]]
print(BM25Okapi(most).get_scores(["ship"]))
assert BM25Okapi(most).get_scores(["ship"])[2] >= max(BM25Okapi(most).get_scores(["ship"])[[0, 1]])
PYTHON
echo "as seen"
