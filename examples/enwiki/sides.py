"""Which side of the retriever REALM's change of recall@1 comes from: examples/enwiki/sides.py FOLDER --first-seed 2 --seeds 3

Questions and blocks are embedded by the start or by REALM, which share one space as REALM starts from the start. Each
combination is compared with the start on both sides, and so is the mean of both vectors. The test questions are left out.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from page import table
from paired import paired
from results import Experiment
from targets import interval

import realmctl
from realmctl.errors import RealmctlError
from realmctl.questions.answers import has_answer
from realmctl.retrieval.loaded_index import LoadedIndex
from realmctl.retrieval.loaded_retriever import LoadedRetriever

Vectors = NDArray[np.float32]


class Recall:
    """Recall@1 of train and dev questions, from the vectors of both sides.

    Attributes:
        kept: The questions, with their file.
        blocks: The blocks, by row.
    """

    def __init__(self, made: Experiment) -> None:
        self.kept = [asked for asked in made.asked if asked["part"] != "test"]
        self.blocks = realmctl.load_blocks(made.start.made["blocks"])
        self._judged: dict[tuple[int, int], bool] = {}

    def sides(self, retriever: LoadedRetriever, index: LoadedIndex) -> tuple[Vectors, Vectors]:
        """Return the vectors of the questions, float32 [questions, D], and of the blocks, float32 [blocks, D]."""
        queries = retriever.encode_queries([asked["question"] for asked in self.kept])
        return queries, index.vectors(np.arange(len(index)))

    def first_hits(self, query_QD: Vectors, block_ND: Vectors) -> NDArray[np.bool_]:
        """Return for which questions the best block holds an answer, bool [questions]."""
        best = (query_QD @ block_ND.T).argmax(1).tolist()
        return np.array([self._holds(number, row) for number, row in enumerate(best)], dtype=bool)

    def _holds(self, number: int, row: int) -> bool:
        if (number, row) not in self._judged:
            self._judged[number, row] = has_answer(self.blocks[row].text, self.kept[number]["answer"], "tokens")
        return self._judged[number, row]


def sides(made: Experiment) -> str:
    """Return a Markdown table: recall@1 minus that of the start, by the side that REALM embeds and by question file."""
    recall = Recall(made)
    start = recall.sides(LoadedRetriever.open(made.start.made["retriever"]), LoadedIndex.open(made.start.made["index"]))
    first = recall.first_hits(*start)
    hits: dict[str, dict[int, NDArray[np.bool_]]] = {
        "blocks and questions": {},
        "blocks": {},
        "questions": {},
        "blocks and questions, mean with the start's vectors": {},
    }
    for seed, run in zip(made.seeds, made.runs, strict=True):
        model = run.made["model"]
        queries, blocks = recall.sides(LoadedRetriever.open(model), LoadedIndex.open(model))
        hits["blocks and questions"][seed] = recall.first_hits(queries, blocks)
        hits["blocks"][seed] = recall.first_hits(start[0], blocks)
        hits["questions"][seed] = recall.first_hits(queries, start[1])
        mean = (queries + start[0]) / 2, (blocks + start[1]) / 2
        hits["blocks and questions, mean with the start's vectors"][seed] = recall.first_hits(*mean)
    asked = {name: np.array([one["file"] == name for one in recall.kept]) for name in made.files}
    asked["all"] = np.ones(len(recall.kept), dtype=bool)
    rows = []
    for label, found in hits.items():
        cells = []
        for where in asked.values():
            difference = paired({seed: h[where] for seed, h in found.items()}, dict.fromkeys(found, first[where]))
            assert difference is not None
            cells.append(interval(difference))
        rows.append([label, *cells])
    return table(["embedded by REALM", *asked], rows)


def main() -> int:
    """Run the command line. Return 0, or the exit code of the error if artifacts cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder that enwiki.sh wrote")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="number of the first seed")
    given = parser.parse_args()
    made = Experiment(given.folder, tuple(range(given.first_seed, given.first_seed + given.seeds)), "dev")
    try:
        print(sides(made))
    except RealmctlError as error:
        print(f"sides: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
