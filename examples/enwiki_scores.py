"""Print the scores of enwiki.sh: enwiki_scores.py WORKSPACE ...; workspaces of several seeds give means and spread."""

import argparse

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspaces", nargs="+", metavar="WORKSPACE", help="a folder that enwiki.sh wrote")
    workspaces = parser.parse_args().workspaces
    print_table("enwiki_scores", [f"{name}={w}/{series}" for w in workspaces for name, series in MEASURED.items()])
