"""Does a cross-encoder, as a reranker or as a teacher, find more than the best search without training? One line a measurement, then a table.

    python examples/teacher/teachers.py --encoder FOLDER --results RUNS.jsonl \\
      --source NAME=FOLDER[,SPLIT] ... --domain NAME=FOLDER[,SPLIT][,pages] ... [--model FOLDER] [--teacher MODEL]

The rules, written before any test seed was run:

1. Domains are COVID-QA, man pages with tldr and with NL2Bash, MLQuestions, QED and questions of SQuAD's style. Measure: nDCG@10 of each question.
2. The teacher of a domain is trained by `rerank-finetune` on labels of the sources alone that are of another domain, from the same encoder: negatives are
   mined of the best search. Names that begin alike (wiki-qed, wiki-squad) are one domain. With --teacher a published one stands for it. No setting is chosen on a domain that is measured.
3. Arms: `encoder` (dense), `best` (the search profile: BM25 and the encoder, fused), `rerank` (the first 50 of `best` by the teacher), `student` (dense, the
   encoder after it learnt the teacher's scores of pieces of sentences by KL), `student-best` (the profile with the student), and with --model `reader` (the first
   50 of `best` by the likelihood of REALM's reader).
   With --judged N the measure is taken on N test questions of each domain, drawn once, the same for all arms and seeds.
4. Seeds 0, 1 and 2 train. A difference is the mean over the seeds and questions, with a bootstrap over both. It is shown where its 95 % interval leaves out 0.
5. Reach: `rerank` minus `best` is shown above on two of five sets, and shown below on none. `student` minus `encoder` has a mean of +.04 or more over the
   sets, and is nowhere shown below -.005. `student-best` minus `best` is shown above on one, and shown below on none. A miss is told, with its size.

What the results have is not measured again, and artifacts that exist are not made again, so a killed run goes on.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "adapt"))

from gains import difference
from measure_ways import Recorder, ndcg_of_run
from ways import Bench, Domain, alone_in, index_of

from realmctl.artifacts import Artifact
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.log import say
from realmctl.pipeline.discovery import own_stages

DEPTH = 50
TEACHER = {"hard_negatives": 3, "batch_size": 8, "lr": 5e-5, "optimizer": "adamw", "max_length": 192}
STUDENT = {"loss": "kl", "hard_negatives": 6, "batch_size": 32, "lr": 2e-5, "optimizer": "adamw"}
PAIRS = (("rerank", "best"), ("reader", "best"), ("student", "encoder"), ("student-best", "best"))
ARMS = {
    "encoder": "dense",
    "best": "profile",
    "rerank": "profile",
    "reader": "profile",
    "student": "dense",
    "student-best": "profile",
}


def drawn(domain: Domain, count: int, workspace: Path) -> Domain:
    """The domain with so many of its judged questions, drawn once; all of them where it has no more."""
    head, *lines = domain.qrels.read_text(encoding="utf-8").splitlines()
    queries = sorted({line.split("\t")[0] for line in lines})
    if len(queries) <= count:
        return domain
    kept, folder = set(random.Random(0).sample(queries, count)), workspace / f"{domain.name}-{domain.split}-{count}"
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    rows = [head, *(line for line in lines if line.split("\t")[0] in kept), ""]
    (folder / "qrels" / f"{domain.split}.tsv").write_text("\n".join(rows), encoding="utf-8")
    asked = (domain.folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [line for line in asked if str(json.loads(line)["_id"]) in kept]
    (folder / "queries.jsonl").write_text("\n".join([*asked, ""]), encoding="utf-8")
    if not (folder / domain.corpus.name).exists():
        (folder / domain.corpus.name).symlink_to(domain.corpus.resolve())
    return replace(domain, folder=folder)


def opened(domain: Domain, start: Artifact, encoder: str, workspace: Path, seed: int) -> Bench:
    """The blocks of a domain, one for each passage, and what starts on them."""
    folder = workspace / domain.name
    with alone_in(folder / "blocks"):
        blocks = own_stages()["chunk"](
            corpus=(domain.corpus,), tokenizer=encoder, max_wordpieces=256, keep_passages=True, workers=1
        ).make(folder / "blocks")
    return Bench(domain, blocks, start, encoder, folder, seed)


def searched(bench: Bench, name: str, retriever: Artifact, method: str, **more: Any) -> Artifact:
    """A ranking of a domain's questions."""
    parts = {"blocks": bench.blocks, "retriever": retriever, "index": index_of(bench, retriever, name)}
    given = {"queries": bench.domain.folder / "queries.jsonl", "method": method, "top": DEPTH, **parts}
    return bench.made("rank", f"{name}-{method}", **given, **more)


def negatives_of(bench: Bench) -> Path:
    """Training data of a source: its labels, with negatives of the best search."""
    ranking = searched(bench, "encoder", bench.start, "hybrid", qrels=bench.domain.qrels)
    qrels = bench.domain.qrels
    if bench.domain.pages:  # a page's first passage is the positive one
        head, *lines = qrels.read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in lines]
        qrels = bench.folder / "first-passages.tsv"
        qrels.write_text(
            "\n".join([head, *("\t".join([query, f"{page}#0", *rest]) for query, page, *rest in rows), ""]),
            encoding="utf-8",
        )
    mined = bench.made(
        "mine-negatives", "negatives", ranking=ranking, blocks=bench.blocks, qrels=qrels, negatives=12, positives=2
    )
    return mined.file("train.jsonl")


def trained_teacher(
    sources: Mapping[str, Path], without: str, encoder: str, workspace: Path, seed: int, steps: int
) -> str:
    """A cross-encoder of the labels of all sources but one domain's."""
    kept = {name: path for name, path in sources.items() if name.split("-")[0] != without.split("-")[0]}
    folder = workspace / "teachers" / "-".join(kept)
    folder.mkdir(parents=True, exist_ok=True)
    training = folder / "train.jsonl"
    with alone_in(folder / "cross-encoder"):
        training.write_text("".join(path.read_text(encoding="utf-8") for path in kept.values()), encoding="utf-8")
        made = own_stages()["rerank-finetune"](start=encoder, passages=training, seed=seed, steps=steps, **TEACHER)
        return str(made.make(folder / "cross-encoder").path)


def taught_student(bench: Bench, teacher: str, questions: int, steps: int) -> Artifact:
    """The encoder after it learnt the teacher's scores of its own hits for pieces of sentences."""
    queries = bench.made("cut-queries", "queries", blocks=bench.blocks, sample=questions, seed=bench.seed)
    parts = {"blocks": bench.blocks, "retriever": bench.start, "index": index_of(bench, bench.start, "encoder")}
    qrels = queries.file("qrels/train.tsv")
    ranking = bench.made("rank", "cut-ranking", queries=queries.path, qrels=qrels, top=10, **parts)
    scored = bench.made("rerank", "cut-scored", ranking=ranking, blocks=bench.blocks, model=teacher, depth=10)
    mined = bench.made(
        "mine-negatives", "cut-negatives", ranking=scored, blocks=bench.blocks, qrels=qrels, negatives=9, positives=1
    )
    return bench.made(
        "dpr-finetune",
        "student",
        retriever=bench.start,
        passages=mined.file("train.jsonl"),
        seed=bench.seed,
        steps=steps,
        **STUDENT,
    )


def measure(
    bench: Bench,
    teacher: str,
    model: str | None,
    recorder: Recorder,
    encoder: str,
    questions: int,
    steps: int,
    arms: Sequence[str] = tuple(ARMS),
) -> None:
    """Measure what the results do not have of a domain and a seed."""
    student: Artifact | None = None
    for arm in arms:
        search = ARMS[arm]
        place = {
            "domain": bench.domain.name,
            "split": bench.domain.split,
            "encoder": encoder,
            "arm": arm,
            "seed": bench.seed,
            "search": search,
        }
        if tuple(place[name] for name in ("domain", "split", "encoder", "arm", "search", "seed")) in recorder.known:
            continue
        if (arm == "reader" and model is None) or (arm in ("encoder", "best", "reader") and bench.seed):
            continue
        begin, method = time.process_time(), "dense" if search == "dense" else "hybrid"
        if arm.startswith("student"):
            student = student or taught_student(bench, teacher, questions, steps)
            ranking = searched(bench, "student", student, method)
        else:
            ranking = searched(bench, "encoder", bench.start, method)
            if arm in ("rerank", "reader"):
                by = teacher if arm == "rerank" else str(model)
                ranking = bench.made("rerank", arm, ranking=ranking, blocks=bench.blocks, model=by, depth=DEPTH)
        values = ndcg_of_run(ranking.file("run.trec"), bench.domain, bench.folder, f"{arm}-{ranking.path.name}")
        recorder.append({**place, "ndcg": values, "cpu_minutes": round((time.process_time() - begin) / 60, 2)})
        say(
            f"{bench.domain.name} {bench.domain.split}, {arm}, seed {bench.seed}: nDCG@10 {sum(values) / len(values):.3f}"
        )


def table(results: Path) -> str:
    """Means of the arms, and their differences with 95 % intervals, as Markdown."""
    held: dict[tuple[str, str], dict[str, list[list[float]]]] = {}
    for record in map(json.loads, results.read_text(encoding="utf-8").splitlines()):
        held.setdefault((record["domain"], record["split"]), {}).setdefault(record["arm"], []).append(record["ndcg"])
    arms = [arm for arm in ARMS if any(arm in found for found in held.values())]
    lines = ["| domain | " + " | ".join(arms) + " |", "|---|" + "--:|" * len(arms)]
    for (name, split), found in held.items():
        means = [f"{np.mean(found[arm]):.3f}" if arm in found else "" for arm in arms]
        lines.append(f"| {name} {split} | " + " | ".join(means) + " |")
    lines += [
        "",
        "| difference | " + " | ".join(f"{name} {split}" for name, split in held) + " |",
        "|---|" + "---|" * len(held),
    ]
    for one, base in PAIRS:
        cells = []
        for found in held.values():
            if one not in found or base not in found:
                cells.append("")
                continue
            told = difference(*(np.array(found[arm]) for arm in (one, base)))
            cells.append(f"{told.mean:+.3f} [{told.low:+.3f}, {told.high:+.3f}]")
        lines.append(f"| {one} - {base} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, help="Folder of a sentence encoder, from which teachers start too.")
    parser.add_argument("--scale", type=float, default=20.0, help="Scale of its inner products.")
    parser.add_argument(
        "--source", action="append", default=[], help="NAME=FOLDER[,SPLIT][,pages]: labels that train teachers."
    )
    parser.add_argument(
        "--domain", action="append", required=True, help="NAME=FOLDER[,SPLIT][,pages] or NAME=FILE.json."
    )
    parser.add_argument("--teacher", help="A published cross-encoder, in place of trained ones.")
    parser.add_argument("--model", help="A model or a qa-model of REALM, whose reader is measured as a reranker.")
    parser.add_argument("--teacher-steps", type=int, default=1500)
    parser.add_argument("--student-steps", type=int, default=300)
    parser.add_argument("--questions", type=int, default=3000, help="Pieces of sentences that the teacher reads.")
    parser.add_argument("--judged", type=int, default=0, help="Test questions of each domain; 0: all of them.")
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS), help="Arms to measure.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workspace", type=Path, default=Path("teacher"))
    parser.add_argument("--results", type=Path, required=True)
    given = parser.parse_args()
    if not given.teacher and not given.source:
        parser.error("name --teacher, or --source for the labels that train one")
    workspace = given.workspace / Path(given.encoder).name
    extras = ImportExtras(encoder=EncoderSettings(scale=given.scale))
    with alone_in(workspace):
        start = import_checkpoint(given.encoder, workspace, extras)["retriever"]
    sources = {
        each.name: negatives_of(opened(each, start, given.encoder, workspace / "sources", 0))
        for each in (Domain.named(text, given.workspace) for text in given.source)
    }
    recorder, name = Recorder(given.results), Path(given.encoder).name
    domains = [Domain.named(text, given.workspace) for text in given.domain]
    if given.judged:
        domains = [drawn(domain, given.judged, workspace / "drawn") for domain in domains]
    for seed in range(given.seeds):  # whole seeds first
        for domain in domains:
            teacher = given.teacher or trained_teacher(
                sources, domain.name, given.encoder, workspace, seed, given.teacher_steps
            )
            bench = opened(domain, start, given.encoder, workspace, seed)
            measure(bench, teacher, given.model, recorder, name, given.questions, given.student_steps, given.arms)
    print(table(given.results))


if __name__ == "__main__":
    main()
