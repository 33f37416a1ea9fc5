"""The ways to adapt a retriever without labels, and the domains they are measured on.

Settings are the same on every domain; docs/results/adapt/notes.md says what was tried, and with which queries in view.
"""

import json
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from alone import alone_in
from rivals import train_tsdae

from realmctl.artifacts import Artifact
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.pipeline.discovery import own_stages

STEPS, BATCH = 50, 32
CONTRAST = {"steps": STEPS, "batch_size": BATCH, "lr": 2e-5, "warmup": 5, "optimizer": "adamw"}
KEPT = {**CONTRAST, "distill_start": 2.0, "cloze_recall": 1000, "cloze_every": 25, "keep": "gain"}
UNLESS_LOST = {"cloze_recall": 1000, "cloze_titles": 1000, "cloze_every": 25, "keep": "unless-lost"}
"""The start is kept where sentences are shown to lose, or titles are asked and show no gain."""
LABELS = (32, 128, 1000)
MASKED = {"steps": STEPS, "batch_size": BATCH, "lr": 2e-5, "length": 128}


SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "dense": {"method": "dense"},
    "bm25": {"method": "bm25", "bm25_stemmer": "english"},
    "hybrid": {"method": "hybrid", "bm25_stemmer": "english", "fusion": "ranks"},
    "profile": {"method": "hybrid"},
}
"""Searches by name. Older results have two more: `scores`, the sum of both scores with BM25's times .7, and `chosen`, with the weight that cloze recall
chose on each domain."""
CLOZE = {
    "method": "hybrid", "fusion": "scores", "bm25_stemmer": "english", "query_wordpieces": 12, "sentences": 400, "titles": 400,
    "among": 1000,
}  # fmt: skip
"""Cloze recall with queries as long as questions, and with titles. The queries are the same for all arms and seeds."""


@dataclass(frozen=True)
class Domain:
    """Passages with judged queries, in BEIR's layout.

    name: Name of the domain. folder: corpus.jsonl or corpus.jsonl.gz, queries.jsonl and qrels/. split: name of the judgements.
    pages: The passage PAGE#N counts as PAGE: judgements name pages.
    """

    name: str
    folder: Path
    split: str = "test"
    pages: bool = False

    @classmethod
    def named(cls, text: str, workspace: Path) -> "Domain":
        """The domain of NAME=FOLDER[,SPLIT][,pages], or of NAME=FILE.json with questions in SQuAD's layout."""
        name, _, rest = text.partition("=")
        place, *more = rest.split(",")
        if place.endswith(".json"):
            return cls(name, _beir_of_squad(Path(place), workspace / "domains" / name))
        splits = [word for word in more if word != "pages"] or ["test"]
        return cls(name, Path(place), splits[0], "pages" in more)

    @property
    def corpus(self) -> Path:
        return next(path for path in sorted(self.folder.glob("corpus.jsonl*")))

    @property
    def qrels(self) -> Path:
        return self.folder / "qrels" / f"{self.split}.tsv"

    def labels(self, count: int, seed: int, folder: Path) -> Path | None:
        """Write the judgements of some dev queries, drawn by the seed; None where there are not so many.

        Where judgements name pages, a page's first passage is the positive one.
        """
        dev = self.folder / "qrels" / "dev.tsv"
        head, *lines = dev.read_text(encoding="utf-8").splitlines() if dev.exists() and self.split != "dev" else [""]
        judged = dict.fromkeys(line.split("\t")[0] for line in lines)
        if len(judged) < count:
            return None
        drawn = set(random.Random(seed).sample(sorted(judged), count))
        kept = [line.split("\t") for line in lines if line.split("\t")[0] in drawn]
        rows = [[query, f"{passage}#0" if self.pages else passage, *rest] for query, passage, *rest in kept]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"labels-{count}-{seed}.tsv"
        path.write_text("\n".join([head, *("\t".join(row) for row in rows), ""]), encoding="utf-8")
        return path


def _beir_of_squad(file: Path, folder: Path) -> Path:
    """Write a SQuAD file as a BEIR folder, once: each paragraph is a passage, and the one that a question is asked of is relevant."""
    with alone_in(folder.parent):
        if folder.exists():
            return folder
        new = folder.with_name(f"{folder.name}.new")
        (new / "qrels").mkdir(parents=True, exist_ok=True)
        with (
            (new / "corpus.jsonl").open("w", encoding="utf-8") as corpus,
            (new / "queries.jsonl").open("w", encoding="utf-8") as queries,
            (new / "qrels" / "test.tsv").open("w", encoding="utf-8") as qrels,
        ):
            qrels.write("query-id\tcorpus-id\tscore\n")
            for number, article in enumerate(json.loads(file.read_text(encoding="utf-8"))["data"]):
                for place, paragraph in enumerate(article["paragraphs"]):
                    passage = f"{number}-{place}"
                    row = {"_id": passage, "title": article.get("title", ""), "text": paragraph["context"]}
                    corpus.write(json.dumps(row) + "\n")
                    for question in paragraph["qas"]:
                        queries.write(json.dumps({"_id": str(question["id"]), "text": question["question"]}) + "\n")
                        qrels.write(f"{question['id']}\t{passage}\t1\n")
        new.replace(folder)
    return folder


@dataclass(frozen=True)
class Bench:
    """What an arm starts from on a domain.

    domain: What is measured on. blocks: Its passages. start: The imported retriever. encoder: Its folder. folder: Where the domain's
    artifacts go. seed: Seed of all training. reader_lm: Folder or hub id of a causal language model, or None. lm, endpoint: Language model that writes and judges
    questions, in this process or behind an address, or None.
    """

    domain: Domain
    blocks: Artifact
    start: Artifact
    encoder: str
    folder: Path
    seed: int
    reader_lm: str | None = None
    lm: str | None = None
    endpoint: str | None = None

    def made(self, command: str, name: str, **settings: Any) -> Artifact:
        """Make an artifact of a stage, or open the one that has this recipe."""
        with alone_in(self.folder / name):
            return own_stages()[command](**settings).make(self.folder / name)

    def trained(self, command: str, name: str, **settings: Any) -> Artifact:
        return self.made(command, name, blocks=self.blocks, retriever=self.start, seed=self.seed, **settings)


def _labelled(count: int) -> Callable[[Bench], Artifact | None]:
    def arm(bench: Bench) -> Artifact | None:
        """Supervised training on labelled dev queries; None where the domain has not so many."""
        labels = bench.domain.labels(count, bench.seed, bench.folder)
        if labels is None:
            return None
        return bench.made(
            "dpr-finetune", f"labels-{count}", retriever=bench.start, passages=bench.domain.folder / "queries.jsonl",
            qrels=labels, corpus=(bench.domain.corpus,), hard_negatives=0, seed=bench.seed, **CONTRAST,
        )  # fmt: skip

    return arm


@dataclass(frozen=True)
class Reading:
    """REALM's sizes. practice_steps, practice_batch: of the reader. The others are of pre-training; micro: sentences computed at once, 0: all; more:
    other options.
    """

    practice_steps: int
    practice_batch: int
    steps: int
    batch: int
    candidates: int
    retriever_lr: float
    micro: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)


SMALL = Reading(practice_steps=800, practice_batch=8, steps=200, batch=8, candidates=5, retriever_lr=5e-6)
"""For one core of a CPU, as the recipe of real text has it."""
JUDGED = replace(SMALL, more={**UNLESS_LOST, "cloze_every": 50})
"""The same, kept unless cloze recall shows a loss."""
APART = replace(SMALL, more={**JUDGED.more, "exclude_own": "source"})
"""The same, with no candidate from the passage's own source: passages `630-0` and `630-1` are of one."""
ENCODER = replace(SMALL, steps=100, retriever_lr=2e-5)
"""After the encoder as published, in about as many seconds as `causal`."""
SHORT = replace(SMALL, steps=100, retriever_lr=2e-5)
TRIALS: Mapping[str, Mapping[str, Any]] = {
    "realm-short": {},
    "realm-short-frozen": {"freeze_reader": True},
    "realm-short-distill": {"retriever_loss": "distill"},
    "realm-short-apart": {"exclude_own": "source"},
}
"""Other recipes of REALM after `adapt` by the name of their arm, shorter and at a higher rate, to compare them with each other."""
LARGE = Reading(practice_steps=1600, practice_batch=64, steps=400, batch=64, candidates=8, retriever_lr=2e-5, micro=16)
"""For a GPU, at the rates and batches of `wikipedia.sh`."""


def _realm(name: str, sizes: Reading, after: str) -> Callable[[Bench], Artifact]:
    def arm(bench: Bench) -> Artifact:
        """REALM after another arm: reading practice, then the salient spans of rules."""
        start, begun = kept_or_start(bench, ARMS[after](bench), after)
        spans = bench.made("tag", "spans", blocks=bench.blocks, tagger="rules", workers=1)
        reader = bench.made(
            "mlm-init", f"reader-{sizes.practice_steps}-{sizes.practice_batch}", blocks=bench.blocks, spans=spans, bert=bench.encoder, head_init="ridge", practice="curriculum",
            steps=sizes.practice_steps, batch_size=sizes.practice_batch, lr=5e-4, layer_decay=0.5, warmup=20, dropout=0.0, seed=bench.seed,
        )  # fmt: skip
        model = bench.made(
            "pretrain", name, blocks=bench.blocks, retriever=start, index=index_of(bench, start, begun), encoder=reader, spans=spans,
            steps=sizes.steps, batch_size=sizes.batch, micro_batch=sizes.micro, candidates=sizes.candidates, lr=1e-4, retriever_lr=sizes.retriever_lr, optimizer="adamw", dropout=0.0,
            refresh="inline", refresh_every=100, seed=bench.seed, **sizes.more,
        )  # fmt: skip
        return start if model.metrics.get("kept_step") == 0 else model.part("retriever")

    return arm


def _by_language_model(name: str, **loss: Any) -> Callable[[Bench], Artifact | None]:
    def arm(bench: Bench) -> Artifact | None:
        """REALM's loop with a frozen causal language model that reads the second part of each passage; None where there is no model."""
        if bench.reader_lm is None:
            return None
        model = bench.made(
            "pretrain", name, blocks=bench.blocks, retriever=bench.start, index=index_of(bench, bench.start, "encoder"), reader_lm=bench.reader_lm,
            block_prompt="{title}\n{block}\n\n", target="continuation", marginal="sequence", steps=40, batch_size=8, candidates=5, lr=2e-5, warmup=5, optimizer="adamw",
            dropout=0.0, refresh="inline", refresh_every=20, seed=bench.seed, **loss,
        )  # fmt: skip
        return model.part("retriever")

    return arm


def _revela(name: str, steps: int) -> Callable[[Bench], Artifact | None]:
    def arm(bench: Bench) -> Artifact | None:
        """In-batch attention of a causal language model that learns too; None where there is no model."""
        if bench.reader_lm is None:
            return None
        return bench.trained("revela-init", name, lm=bench.reader_lm, group_by="source", steps=steps, warmup=2)

    return arm


def _generated(name: str, hard_negatives: int) -> Callable[[Bench], Artifact | None]:
    def arm(bench: Bench) -> Artifact | None:
        """Training on questions that a language model writes, as `labels-N` trains on people's; None where there is no model.

        A question stays if the encoder finds its passage among the 20 best. Hard negatives are what the encoder finds besides.
        """
        if bench.reader_lm is None:
            return None
        index = index_of(bench, bench.start, "encoder")
        queries = bench.made(
            "generate-queries", "queries", blocks=bench.blocks, lm=bench.reader_lm, sample=1000, temperature=0.7, seed=bench.seed,
            round_trip=bench.start, index=index, round_trip_top=20,
        )  # fmt: skip
        passages = queries.path
        if hard_negatives:
            ranking = bench.made(
                "rank", "ranking-of-queries", blocks=bench.blocks, retriever=bench.start, index=index, queries=queries.path, top=50
            )  # fmt: skip
            mined = bench.made(
                "mine-negatives", "negatives", blocks=bench.blocks, ranking=ranking, qrels=queries.path, relative_margin=0.05
            )  # fmt: skip
            passages = mined.file("train.jsonl")
        return bench.made(
            "dpr-finetune", name, retriever=bench.start, passages=passages, hard_negatives=hard_negatives, seed=bench.seed, **CONTRAST
        )  # fmt: skip

    return arm


def _tsdae(bench: Bench) -> Artifact | None:
    """TSDAE of sentence-transformers; None where it is not installed."""
    workspace = bench.folder / f"tsdae-{bench.seed}"
    with alone_in(workspace):
        trained, new = workspace / "encoder", workspace / "encoder.new"
        if not trained.exists():
            if not train_tsdae(bench.encoder, bench.blocks, bench.seed, STEPS, BATCH, new):
                return None
            new.replace(trained)
        scale = EncoderSettings(scale=bench.start.settings["scale"])
        return import_checkpoint(str(trained), workspace, ImportExtras(encoder=scale))["retriever"]


def cloze_recall(bench: Bench, retriever: Artifact, name: str) -> dict[str, float]:
    """Mean reciprocal ranks of a retriever's sentences and titles, without labels, by both together and by either alone."""
    found = bench.made("eval-cloze", f"cloze-{name}", blocks=bench.blocks, retriever=retriever, **CLOZE).metrics
    return {
        **{each: found[each] for each in ("cloze_rr", "title_rr") if each in found},
        **{f"{each}_rr": found[each]["cloze_rr"] for each in ("dense", "bm25")},
    }


def kept_or_start(bench: Bench, retriever: Artifact, name: str) -> tuple[Artifact, str]:
    """A retriever with the name of its index, and where training kept none of its steps the start with its own: the same weights."""
    return (bench.start, "encoder") if retriever.metrics.get("kept_step") == 0 else (retriever, name)


def index_of(bench: Bench, retriever: Artifact, name: str) -> Artifact:
    """Embed the passages and build an exact index."""
    embeddings = bench.made("embed", f"embeddings-{name}", blocks=bench.blocks, retriever=retriever)
    return bench.made("build-index", f"index-{name}", embeddings=embeddings, type="exact")


ARMS: Mapping[str, Callable[[Bench], Artifact | None]] = {
    "encoder": lambda bench: bench.start,
    "ict": lambda bench: bench.trained("ict-init", "ict", **CONTRAST),
    "ict-distilled": lambda bench: bench.trained("ict-init", "ict-distilled", **CONTRAST, distill_start=2.0),
    "ict-kept": lambda bench: bench.trained("ict-init", "ict-kept", **KEPT, cloze_titles=1000),
    "spider": lambda bench: bench.trained("spider-init", "spider", **CONTRAST, group_by="source"),
    "cocondenser": lambda bench: bench.trained(
        "condenser-init", "cocondenser", **MASKED, contrastive=True, skip_from=3, group_by="source"
    ).part("retriever"),
    "retromae": lambda bench: bench.trained("retromae-init", "retromae", **MASKED).part("retriever"),
    "tsdae": _tsdae,
    "realm": _realm("realm", SMALL, "ict"),
    "realm-kept": _realm("realm-kept", SMALL, "ict-kept"),
    "realm-judged": _realm("realm-judged", JUDGED, "ict-kept"),
    "realm-apart": _realm("realm-apart", APART, "ict-kept"),
    "realm-large": _realm("realm-large", LARGE, "encoder"),
    **{name: _realm(name, replace(SHORT, more=more), "ict-kept") for name, more in TRIALS.items()},
    "realm-encoder": _realm("realm-encoder", ENCODER, "encoder"),
    "causal": _by_language_model("causal"),
    "replug": _by_language_model("replug", retriever_loss="replug"),
    "revela": _revela("revela", 26),
    "revela-short": _revela("revela-short", 18),
    "generated": _generated("generated", 0),
    "generated-hard": _generated("generated-hard", 1),
    **{f"labels-{count}": _labelled(count) for count in LABELS},
}
"""Arms by name. Crops, hard negatives of BM25 and ICT beside REALM were measured too; they brought nothing that is shown, and their code is gone.
They train on the passages of the domain alone; `labels-N` on N labelled dev queries. None: not possible on this domain."""
