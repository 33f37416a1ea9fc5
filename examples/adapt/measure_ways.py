"""Measure ways to adapt a retriever without labels, and append each measurement to a file.

    python examples/adapt/measure_ways.py --encoder FOLDER --results RUNS.jsonl --domain NAME=FOLDER[,SPLIT][,pages] ...

A domain is a BEIR folder, or a file in SQuAD's layout. `pages`: the passage PAGE#N counts as PAGE. Each measurement is a ranking of one
search (dense, BM25, or both, fused by ranks or by scores) with an arm's retriever, as nDCG@10 of each query. The search `cloze` is none: it
measures cloze recall, which needs no questions; `generated` and `judged` (label_free.py) need a language model, --lm and --endpoint. What the results have is not measured again, and
artifacts that exist are not made again, so an interrupted run goes on. Several processes can measure in one workspace at once.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from label_free import GENERATED, JUDGED, generated, judged
from ways import ARMS, SEARCHES, TRIALS, Bench, Domain, alone_in, cloze_recall, index_of

from realmctl.artifacts import Artifact
from realmctl.errors import InputError
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.log import say
from realmctl.models.precision import pick_device
from realmctl.pipeline.discovery import own_stages

MEASURE = "nDCG@10"
TOLD = {GENERATED: generated, JUDGED: judged}
"""Measures without labels that a language model makes."""


def ndcg_of_run(run: Path, domain: Domain, folder: Path, name: str) -> list[float]:
    """nDCG@10 of each judged query, by rising id, of a TREC run. name: of the file of its pages, where these are judged."""
    if domain.pages:
        run = _by_page(run, folder / f"{name}-pages.trec")
    settings: dict[str, Any] = {"qrels": domain.qrels, "measures": MEASURE, "run_file": run}
    with alone_in(folder / "scores"):
        scores = own_stages()["eval-run"](**settings).make(folder / "scores")
    lines = [json.loads(line) for line in scores.file("per-query.jsonl").read_text(encoding="utf-8").splitlines()]
    return [round(line[MEASURE], 4) for line in sorted(lines, key=lambda line: line["query"])]


def _by_page(run: Path, to: Path) -> Path:
    """Rank pages by their best passage. Returns the new run."""
    seen: set[tuple[str, str]] = set()
    with run.open(encoding="utf-8") as lines, to.open("w", encoding="utf-8") as out:
        for line in lines:
            query, zero, passage, *rest = line.split()
            page = passage.rsplit("#", 1)[0]
            if (query, page) not in seen:
                seen.add((query, page))
                out.write(" ".join([query, zero, page, *rest]) + "\n")
    return to


class Recorder:
    """Appends measurements to the results, and knows which ones they have."""

    def __init__(self, results: Path) -> None:
        self.results = results
        lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
        self.known = {self.key(json.loads(line)) for line in lines}

    @staticmethod
    def key(record: dict[str, Any]) -> tuple[Any, ...]:
        """What a measurement is of."""
        named = tuple(record[name] for name in ("domain", "split", "encoder", "arm", "search", "seed"))
        return (*named, record.get("teacher"))

    def append(self, record: dict[str, Any]) -> None:
        self.results.parent.mkdir(parents=True, exist_ok=True)
        with self.results.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
        self.known.add(self.key(record))

    def measure(self, domain: Domain, bench: Bench, arm: str, encoder: str, searches: Sequence[str]) -> None:
        """Rank with the arm's retriever by each search, and record what is missing."""
        place = {"domain": domain.name, "split": domain.split, "encoder": encoder, "arm": arm, "seed": bench.seed}
        missing = [search for search in searches if self.key({**place, "search": search}) not in self.known]
        if not missing:
            return
        start = time.process_time()
        try:
            retriever = ARMS[arm](bench) if arm in ARMS else None
        except InputError as error:  # such as Spider where each passage is a document of its own
            say(f"{domain.name} {domain.split}: {arm} is not possible. {error}")
            return
        if retriever is None and arm in ARMS:
            say(
                f"{domain.name} {domain.split}: {arm} needs more labelled dev queries, --reader-lm or sentence-transformers"
            )
            return
        minutes = (time.process_time() - start) / 60
        kept = {} if retriever is None else {"kept_step": retriever.metrics.get("kept_step")}
        parts: dict[str, Artifact] = {}
        if retriever is not None:  # the start has been embedded
            is_start = kept["kept_step"] == 0 or retriever.path == bench.start.path
            searched, name = (bench.start, "encoder") if is_start else (retriever, arm)
            parts = {"retriever": searched}
        cloze = cloze_recall(bench, searched, name) if parts and "cloze" in missing else {}
        if parts and {*missing} - {"cloze"}:
            parts["index"] = index_of(bench, searched, name)
        for search in missing:
            if search == "cloze":
                self.append({**place, "search": search, "cloze": {**cloze, **kept}})
                continue
            if search in TOLD:
                told = TOLD[search](bench, searched, name) if parts else None
                if told is not None:
                    self.append({**place, "search": search, "told": round(told, 6), "cloze": kept})
                continue
            ranking = bench.made(
                "rank", f"{arm}-{search}", blocks=bench.blocks, queries=domain.folder / "queries.jsonl",
                top=50 if domain.pages else 10, **SEARCHES[search], **parts,
            )  # fmt: skip
            run, name = ranking.file("run.trec"), f"{arm}-{search}-{ranking.path.name}"
            values = ndcg_of_run(run, domain, bench.folder, name)
            self.append(
                {
                    **place,
                    "search": search,
                    "ndcg": values,
                    "cpu_minutes": round(minutes, 2),
                    "device": pick_device("auto").type,
                    "cloze": {**cloze, **kept},
                }
            )
            say(f"{domain.name} {domain.split}, {arm}, {search}: nDCG@10 {sum(values) / len(values):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, help="Folder of a sentence encoder.")
    parser.add_argument("--encoder-name", default="", help="Its name in the results. Default: the name of the folder.")
    parser.add_argument(
        "--scale", type=float, default=20.0, help="Scale of its inner products, the inverse of its temperature."
    )
    parser.add_argument(
        "--domain", action="append", required=True, help="NAME=FOLDER[,SPLIT][,pages] or NAME=FILE.json."
    )
    parser.add_argument(
        "--arms",
        default=",".join(arm for arm in ARMS if arm not in TRIALS),
        help="Arms, separated by commas. Default: all but the trials of REALM.",
    )
    parser.add_argument("--searches", default="dense,profile,cloze", help="Searches of these arms.")
    parser.add_argument(
        "--reader-lm", help="Causal language model of the arms `causal` and `generated`: a folder or a hub id."
    )
    parser.add_argument("--lm", help="Language model of the searches `generated` and `judged`.")
    parser.add_argument("--endpoint", help="Address of a server that has it; `judged` needs one.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="the encoder and BM25 are measured with seed 0 alone")
    parser.add_argument("--workspace", type=Path, default=Path("adapt"))
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    name = options.encoder_name or Path(options.encoder).name
    with alone_in(options.workspace / name):
        start = import_checkpoint(
            options.encoder, options.workspace / name, ImportExtras(encoder=EncoderSettings(scale=options.scale))
        )["retriever"]
    recorder = Recorder(options.results)
    domains = [Domain.named(text, options.workspace) for text in options.domain]
    for seed in range(options.first_seed, options.first_seed + options.seeds):  # whole seeds first
        for domain in domains:
            folder = options.workspace / name / domain.name
            with alone_in(folder / "blocks"):
                blocks = own_stages()["chunk"](
                    corpus=(domain.corpus,),
                    tokenizer=options.encoder,
                    max_wordpieces=256,
                    keep_passages=True,
                    workers=1,
                ).make(folder / "blocks")
            bench = Bench(
                domain, blocks, start, options.encoder, folder, seed, options.reader_lm, options.lm, options.endpoint
            )
            if not seed:
                recorder.measure(domain, bench, "bm25", "", ("bm25",))
            for arm in options.arms.split(","):
                if arm != "encoder" or not seed:
                    recorder.measure(domain, bench, arm, name, options.searches.split(","))


if __name__ == "__main__":
    main()
