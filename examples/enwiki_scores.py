"""Print what enwiki.sh measured: enwiki_scores.py WORKSPACE ...; workspaces of several seeds give means and spread."""

import sys

from compare_scores import print_table

MEASURED = {
    "start, not tuned": "start/recall",
    "REALM, not tuned": "start/realm-recall",
    "BM25, not tuned": "start/bm25-recall",
    "start, held-out sentences": "start/utility",
    "REALM, held-out sentences": "utility",
    "closed-book, fine-tuned": "start/closed-book-scores",
    "start, fine-tuned": "start/start-scores",
    "REALM, fine-tuned": "scores",
    "BM25, fine-tuned": "start/bm25-scores",
}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(f"{__doc__}\n\nenwiki_scores: name a workspace that enwiki.sh has made")
    print_table("enwiki_scores", [f"{name}={w}/{series}" for w in sys.argv[1:] for name, series in MEASURED.items()])
