"""Measure ways to fuse an encoder's ranking and BM25's, and write a report.

    python examples/adapt/measure_fusions.py --encoder FOLDER --domain NAME=FOLDER[,SPLIT][,pages] ... --results RUNS.jsonl --report REPORT.md

Domains are those of `measure_ways.py`. The profile is `rank --method hybrid` without any other option. The other ways fuse the first 100 blocks
of `rank --method dense` and of `rank --method bm25` here. "Weighed" is the profile with the weight of `weigh-bm25`: each half of the judged questions
is searched with the weight that the other half gives. Nothing is trained. What the results have is not measured again; --weighed measures this way alone for those that lack it.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure_ways import ndcg_of_run
from numpy.typing import NDArray
from ways import Bench, Domain, alone_in, index_of

from realmctl.artifacts import Artifact
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.extras.ir.ranking.trec import read_run
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.log import say
from realmctl.pipeline.discovery import own_stages

DEPTH, KEPT = 100, 50
Scores = Mapping[str, float]
Fusion = Callable[[Scores, Scores], Scores]


def by_ranks(dense: Scores, bm25: Scores) -> Scores:
    """Reciprocal rank fusion."""
    place = [{name: 1 / (60 + rank) for rank, name in enumerate(own, 1)} for own in (dense, bm25)]
    return {name: sum(each.get(name, 0.0) for each in place) for name in {*dense, *bm25}}


def summed(weight: float) -> Fusion:
    """The retriever's score plus BM25's times a weight. A block that one ranking lacks has the last score of it."""

    def fused(dense: Scores, bm25: Scores) -> Scores:
        low = [min(each.values(), default=0.0) if len(each) == DEPTH else 0.0 for each in (dense, bm25)]
        return {name: dense.get(name, low[0]) + weight * bm25.get(name, low[1]) for name in {*dense, *bm25}}

    return fused


def shared(share: float) -> Fusion:
    """Both scores from 1 for the first block to 0 for the last, BM25's with a fixed share."""

    def scaled(own: Scores) -> Scores:
        if not own:
            return {}
        high, low = max(own.values()), min(own.values()) if len(own) == DEPTH else 0.0
        return {name: (score - low) / max(high - low, 1e-9) for name, score in own.items()}

    def fused(dense: Scores, bm25: Scores) -> Scores:
        first, second = scaled(dense), scaled(bm25)
        return {name: (1 - share) * first.get(name, 0.0) + share * second.get(name, 0.0) for name in {*first, *second}}

    return fused


SETS = {
    "covid": "COVID-QA", "ml": "MLQuestions", "tldr": "man pages, tldr", "nl2bash": "man pages, NL2Bash", "squad": "SQuAD-style questions",
    "nq": "Natural Questions", "ja": "JaQuAD, Japanese", "ko": "KorQuAD, Korean", "zh": "DRCD, Chinese",
}  # fmt: skip
"""Names of domains in the report."""
SHARES = tuple(round(0.1 * part, 1) for part in range(1, 10))
WAYS: Mapping[str, Fusion] = {
    "dense": lambda dense, bm25: dense,
    "bm25": lambda dense, bm25: bm25,
    "ranks": by_ranks,
    "sum .7": summed(0.7),
    **{f"min-max {share}": shared(share) for share in SHARES},
}


def write_fused(dense: Path, bm25: Path, way: str, to: Path) -> Path:
    """Write the fused ranking of each query as a TREC run."""
    second = dict(read_run(bm25))
    with to.open("w", encoding="utf-8") as out:
        for query, first in read_run(dense):
            found = WAYS[way](first, second.get(query, {}))
            for rank, name in enumerate(sorted(found, key=lambda name: (-found[name], name))[:KEPT], 1):
                out.write(f"{query} Q0 {name} {rank} {found[name]:.9g} {way.replace(' ', '-')}\n")
    return to


def measure(domain: Domain, bench: Bench, encoder: str, language: str) -> dict[str, object]:
    """nDCG@10 of each query by every way."""
    parts = {"retriever": bench.start, "index": index_of(bench, bench.start, "encoder")}
    asked = {"blocks": bench.blocks, "queries": domain.folder / "queries.jsonl"}
    runs: dict[str, Artifact] = {
        "dense": bench.made("rank", "fused-dense", method="dense", top=DEPTH, **asked, **parts),
        "bm25": bench.made("rank", "fused-bm25", method="bm25", top=DEPTH, **asked),
        "profile": bench.made("rank", "fused-profile", method="hybrid", top=KEPT, **asked, **parts),
    }
    files = {name: each.file("run.trec") for name, each in runs.items()}
    found = {"profile": ndcg_of_run(files["profile"], domain, bench.folder, "profile")}
    for way in WAYS:
        fused = write_fused(files["dense"], files["bm25"], way, bench.folder / "fused.trec")
        found[way] = ndcg_of_run(fused, domain, bench.folder, "fused")
    found["weighed"], weights = weighed(domain, bench)
    search = json.loads(runs["profile"].file("ranking.json").read_text(encoding="utf-8"))["search"]
    return {
        "domain": domain.name,
        "encoder": encoder,
        "language": language,
        "search": search,
        "weights": weights,
        "ndcg": found,
    }


def weighed(domain: Domain, bench: Bench) -> tuple[list[float], list[float]]:
    """nDCG@10 of each query, searched with the weight that the other half of the judged queries gives, and the weights of both halves."""
    parts = {"blocks": bench.blocks, "retriever": bench.start, "index": index_of(bench, bench.start, "encoder")}
    texts = {
        str(each["_id"]): each["text"]
        for each in map(json.loads, (domain.folder / "queries.jsonl").open(encoding="utf-8"))
    }
    judged = sorted({line.split("\t")[0] for line in domain.qrels.read_text(encoding="utf-8").splitlines()[1:]})
    found, weights = [], []
    for half in (0, 1):
        other = bench.folder / f"{domain.name}-half-{1 - half}.txt"
        asked = [" ".join(texts[query].split()) for query in judged[1 - half :: 2]]
        other.write_text("\n".join(asked) + "\n", encoding="utf-8")
        weight = bench.made("weigh-bm25", "fused-weight", questions=other, **parts).metrics["bm25_weight"]
        ranking = bench.made(
            "rank",
            "fused-profile",
            method="hybrid",
            top=KEPT,
            bm25_weight=weight,
            queries=domain.folder / "queries.jsonl",
            **parts,
        )
        found.append(ndcg_of_run(ranking.file("run.trec"), domain, bench.folder, "weighed"))
        weights.append(weight)
    return [found[number % 2][number] for number in range(len(found[0]))], weights


def report(records: list[dict[str, object]]) -> str:
    """Tables of every encoder: mean nDCG@10 by way, with the difference of the profile from the best fixed share and from the encoder."""
    lines = [
        "# Fusions of an encoder and BM25",
        "",
        "nDCG@10. Intervals are bootstraps over queries, 95 %. Made by `examples/adapt/measure_fusions.py`.",
    ]
    for encoder in dict.fromkeys(str(each["encoder"]) for each in records):
        lines += [
            "", f"## {encoder}", "",
            "| set | encoder | BM25 | RRF | sum, BM25 × .7 | profile | best fixed share (share) | profile − encoder | profile − best share |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
        ]  # fmt: skip
        own = [each for each in records if each["encoder"] == encoder]
        rows = [_row(each["ndcg"]) for each in own]  # type: ignore[arg-type]
        lines += [
            f"| {SETS.get(str(each['domain']), each['domain'])} | " + " | ".join(cells) + " |"
            for each, (cells, _) in zip(own, rows, strict=True)
        ]
        means = np.mean([values for _, values in rows], axis=0)
        texts = [f"{value:.3f}" for value in means[:6]] + [f"{value:+.3f}" for value in means[6:]]
        lines += [f"| **mean of {len(own)}** | " + " | ".join(texts) + " |"]
        lines += _weighed([each for each in own if "weighed" in each["ndcg"]])  # type: ignore[operator]
    return "\n".join(lines) + "\n"


def _weighed(records: list[dict[str, object]]) -> list[str]:
    """A table of what the weight of `weigh-bm25` changes; nothing without such records."""
    if not records:
        return []
    lines = [
        "",
        "| set | weights of both halves | profile | weighed | best fixed share | weighed − encoder | weighed − best share | weighed − profile |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    rows = []
    for each in records:
        by = {way: np.array(values) for way, values in each["ndcg"].items()}  # type: ignore[attr-defined]
        best = max((by[f"min-max {share}"] for share in SHARES), key=np.mean)
        gains = [by["weighed"] - other for other in (by["dense"], best, by["profile"])]
        means = [by["profile"].mean(), by["weighed"].mean(), best.mean()]
        rows.append([*means, *(gain.mean() for gain in gains)])
        weights = " ".join(f"{weight:.2f}" for weight in each["weights"])  # type: ignore[attr-defined]
        cells = [weights, *(f"{mean:.3f}" for mean in means), *map(_gain, gains)]
        lines.append(f"| {SETS.get(str(each['domain']), each['domain'])} | " + " | ".join(cells) + " |")
    means = np.mean(rows, axis=0)
    texts = ["", *(f"{value:.3f}" for value in means[:3]), *(f"{value:+.3f}" for value in means[3:])]
    return [*lines, f"| **mean of {len(rows)}** | " + " | ".join(texts) + " |"]


def _gain(difference: NDArray[np.float64]) -> str:
    """Mean and 95 % interval of a difference, by query."""
    drawn = np.random.default_rng(0).integers(0, len(difference), (2000, len(difference)))
    low, high = np.percentile(difference[drawn].mean(axis=1), [2.5, 97.5])
    return f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def _row(ndcg: Mapping[str, list[float]]) -> tuple[list[str], list[float]]:
    by = {way: np.array(values) for way, values in ndcg.items()}
    share = max(SHARES, key=lambda share: by[f"min-max {share}"].mean())
    best = by[f"min-max {share}"]
    values = [by[way].mean() for way in ("dense", "bm25", "ranks", "sum .7", "profile")] + [best.mean()]
    cells = [f"{value:.3f}" for value in values]
    cells[-1] += f" ({share:g})"
    for other in (by["dense"], best):
        difference = by["profile"] - other
        values.append(difference.mean())
        cells.append(_gain(difference))
    return cells, values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, help="Folder of a sentence encoder.")
    parser.add_argument("--encoder-name", default="", help="Its name in the results. Default: the name of the folder.")
    parser.add_argument("--scale", type=float, default=20.0, help="Scale of its inner products.")
    parser.add_argument("--language", default="en", help="Language of the domains.")
    parser.add_argument("--domain", action="append", default=[], help="NAME=FOLDER[,SPLIT][,pages] or NAME=FILE.json.")
    parser.add_argument("--workspace", type=Path, default=Path("fusions"))
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--report", type=Path)
    parser.add_argument(
        "--weighed",
        action="store_true",
        help="Measure the weighed profile of domains that the results have without it.",
    )
    options = parser.parse_args()
    name = options.encoder_name or Path(options.encoder).name
    kept = options.results.read_text(encoding="utf-8").splitlines() if options.results.exists() else []
    records = [json.loads(line) for line in kept]
    with alone_in(options.workspace / name):
        settings = ImportExtras(encoder=EncoderSettings(scale=options.scale))
        start = import_checkpoint(options.encoder, options.workspace / name, settings)["retriever"]
    for text in options.domain:
        domain = Domain.named(text, options.workspace)
        known = next((each for each in records if (each["domain"], each["encoder"]) == (domain.name, name)), None)
        if known is not None and ("weighed" in known["ndcg"] or not options.weighed):
            continue
        folder = options.workspace / name / domain.name
        with alone_in(folder / "blocks"):
            blocks = own_stages()["chunk"](
                corpus=(domain.corpus,), tokenizer=options.encoder, max_wordpieces=256, keep_passages=True, workers=1,
                language=options.language,
            ).make(folder / "blocks")  # fmt: skip
        bench = Bench(domain, blocks, start, options.encoder, folder, 0)
        if known is not None:
            known["ndcg"]["weighed"], known["weights"] = weighed(domain, bench)
            new = options.results.with_suffix(".new")
            new.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
            new.replace(options.results)
            continue
        records.append(measure(domain, bench, name, options.language))
        options.results.parent.mkdir(parents=True, exist_ok=True)
        with options.results.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(records[-1]) + "\n")
        say(f"{domain.name}: {_row(records[-1]['ndcg'])[0]}")
    if options.report:
        options.report.write_text(report(records), encoding="utf-8")


if __name__ == "__main__":
    main()
