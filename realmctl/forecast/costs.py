"""What each stage computes, keeps in memory, writes and sends, from its settings and the sizes of what it reads.

Work is counted in the unit that decides the stage's time: floating-point operations of `train` and `embed`, bytes of corpus of
`chunk`, wordpieces of `tag`, inserts of an hnsw graph, products of a recall gate, and rows of faiss. Only matrix products and attention are counted; a backward pass is twice
its forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from realmctl.extras.faiss.faiss_index import SAMPLED_ROWS
from realmctl.forecast.chain import PlannedStage
from realmctl.forecast.sizes import (
    STORED_BYTES_PER_WORDPIECE,
    TAGGED_BYTES_PER_WORDPIECE,
    EncoderShape,
    Text,
    VectorsSize,
    language_model_shape,
)
from realmctl.index.index_type import IndexType
from realmctl.index.names import INDEX_TYPES
from realmctl.index.settings import IndexSettings
from realmctl.pipeline.fields import roles
from realmctl.questions.questions import read_questions

WorkKind = Literal["chunk", "tag", "train", "embed", "hnsw", "gate", "faiss", "copy"]
BYTES_OF_A_TRAINED_WEIGHT = 16
"""float32: the weight, its gradient, and two moments of the optimizer."""
CHECKPOINT_BYTES_OF_A_WEIGHT = 12
CHECKPOINTS_KEPT = 2
ACTIVATION_BYTES = 34
"""Bytes that a layer keeps for the backward pass, for each token and hidden number, in bfloat16 with fused attention. Korthikanti
et al., Reducing Activation Recomputation in Large Transformer Models (MLSys 2023), equation 2 without its attention term."""
SENTENCE = 32
"""Wordpieces of a mean query with its two marks."""
WRITTEN = 14
"""Tokens of a mean query that a language model writes."""
FAISS_TRAINING = 8
"""Rows that faiss adds in the time in which it trains on one. Of an inverted file with product quantization, docs/results/indexes/report.md."""
BEGINNING = 280
"""Tokens of the examples in the prompt of `generate-queries`, which all blocks share."""


@dataclass(frozen=True)
class Refreshed:
    """What the refresher does for one index.

    Attributes:
        flops: Floating-point operations of the embedding.
        nbytes: Bytes of the index.
        index: Name of the index that training begins with, and the cost of building it again; None where it is not known.
    """

    flops: float
    nbytes: float
    index: tuple[str, Cost] | None = None


@dataclass(frozen=True)
class Cost:
    """What a stage takes.

    Attributes:
        kind: The unit of `work`.
        work: Amount, over the whole run of the stage.
        steps: Training steps; 0 for stages without.
        weights: Weights that are trained.
        row_bytes: Memory in bytes of one row of the batch in training.
        rows: Rows of the batch.
        held_bytes: Memory on each device that does not depend on the batch: an index.
        disk_bytes: Bytes that it leaves or needs on disk.
        refreshed: The refresher's work, for `pretrain`.
    """

    kind: WorkKind
    work: float
    steps: int = 0
    weights: float = 0.0
    row_bytes: float = 0.0
    rows: int = 1
    held_bytes: float = 0.0
    disk_bytes: float = 0.0
    refreshed: Refreshed | None = None


@dataclass
class Made:
    """Sizes of the outputs so far: {output: size}, by what they are."""

    texts: dict[str, Text] = field(default_factory=dict)
    shapes: dict[str, EncoderShape] = field(default_factory=dict)
    vectors: dict[str, VectorsSize] = field(default_factory=dict)
    indexes: dict[str, Cost] = field(default_factory=dict)
    """What an index costs in a refresh."""


ShapeOf = Callable[[str | None], EncoderShape]


def cost_of(stage: PlannedStage, made: Made, text: Text | None, shape_of: ShapeOf) -> Cost | None:
    """Return the cost of a stage, and record in `made` what it makes. None for a stage, or a type of index, whose cost is not known.

    Args:
        stage: The stage.
        made: What the stages before it made.
        text: The blocks that it makes, if it is `chunk`.
        shape_of: The shape of a BERT by its `--bert`; of the smallest default for None.
    """
    reader = _COSTS.get(stage.command)
    return reader(_Reading(stage, made, text, shape_of)) if reader else None


class _Reading:
    """A stage's settings, and the sizes of its inputs."""

    def __init__(self, stage: PlannedStage, made: Made, text: Text | None, shape_of: ShapeOf) -> None:
        self.stage, self.made, self.text, self.shape_of = stage, made, text, shape_of
        self.settings: Mapping[str, Any] = stage.settings

    def blocks(self, name: str = "blocks") -> Text:
        return self.made.texts[self.stage.inputs[name]]

    def encoder(self) -> EncoderShape:
        """The BERT that the stage starts from: --bert, an encoder, or the model's."""
        if self.settings.get("bert"):
            return self.shape_of(self.settings["bert"])
        for name in ("encoder", "model", "retriever", "answerer", "qa_model"):
            if (made := self.stage.inputs.get(name)) in self.made.shapes:
                return self.made.shapes[str(made)]
        return self.shape_of(None)

    def index(self) -> VectorsSize:
        for name in ("index", "model", "qa_model", "retriever"):
            if (made := self.stage.inputs.get(name)) in self.made.vectors:
                return self.made.vectors[str(made)]
        return VectorsSize(self.blocks().blocks, self.settings.get("projection") or 128)

    def keep(self, shape: EncoderShape | None = None, vectors: VectorsSize | None = None) -> None:
        if shape is not None:
            self.made.shapes[self.stage.name] = shape
        if vectors is not None:
            self.made.vectors[self.stage.name] = vectors


def _chunk(read: _Reading) -> Cost:
    assert read.text is not None
    read.made.texts[read.stage.name] = read.text
    return Cost("chunk", read.text.source_bytes, disk_bytes=STORED_BYTES_PER_WORDPIECE * read.text.wordpieces)


def _tag(read: _Reading) -> Cost:
    text = read.blocks()
    read.made.texts[read.stage.name] = text
    return Cost("tag", text.wordpieces, disk_bytes=TAGGED_BYTES_PER_WORDPIECE * text.wordpieces)


def _training(
    shape: EncoderShape, steps: int, rows: int, row_flops: float, row_tokens: float, weights: float, **more: Any
) -> Cost:
    return Cost(
        "train",
        3.0 * steps * rows * row_flops,
        steps=steps,
        weights=weights,
        rows=rows,
        row_bytes=row_tokens * shape.layers * shape.hidden * ACTIVATION_BYTES,
        disk_bytes=CHECKPOINTS_KEPT * CHECKPOINT_BYTES_OF_A_WEIGHT * weights + more.pop("disk_bytes", 0.0),
        **more,
    )


def _mlm(read: _Reading) -> Cost:
    shape, settings = read.encoder(), read.settings
    read.keep(shape)
    if "spans" in read.stage.inputs:
        block = settings["window"] if settings["practice"] == "curriculum" else read.blocks().length
        length, masks = SENTENCE + block, 5.0
    else:
        length = min(settings["length"], read.blocks().length)
        masks = settings["mask_rate"] * length
    return _training(
        shape,
        settings["steps"],
        settings["batch_size"],
        shape.flops(length) + shape.head_flops(masks),
        length,
        shape.weights,
    )


def _condenser(read: _Reading) -> Cost:
    shape, settings = read.encoder(), read.settings
    read.keep(shape)
    length = min(settings["length"], read.blocks().length)
    head = EncoderShape(settings["head_layers"], shape.hidden, shape.intermediate, shape.vocabulary)
    logits = (1 + settings["late_mlm"]) * shape.head_flops(settings["mask_rate"] * length)
    spans = 2 if settings["contrastive"] else 1
    again = 1 / 3 if settings["contrastive"] else 0.0  # the gradient cache repeats the forward pass
    row = spans * (shape.flops(length) * (1 + again) + head.flops(length) + logits)
    return _training(
        shape, settings["steps"], settings["batch_size"], row, spans * length, shape.weights + head.weights
    )


def _retromae(read: _Reading) -> Cost:
    shape, settings = read.encoder(), read.settings
    read.keep(shape)
    length = min(settings["length"], read.blocks().length)
    decoder = EncoderShape(1, shape.hidden, shape.intermediate, shape.vocabulary)
    predicted = length * (1 + settings["mask_rate"] + bool(settings["bag_of_words"]))
    row = shape.flops(length) + decoder.flops(length) + shape.head_flops(predicted)
    return _training(shape, settings["steps"], settings["batch_size"], row, length, shape.weights + decoder.weights)


def _ict(read: _Reading) -> Cost:
    shape, settings, block = read.encoder(), read.settings, read.blocks().length
    read.keep(shape)
    row = shape.flops(SENTENCE) + shape.flops(block)
    towers = 2 if settings["towers"] == "separate" else 1
    return _training(shape, settings["steps"], settings["batch_size"], row, SENTENCE + block, towers * shape.weights)


def _generate_queries(read: _Reading) -> Cost:
    """A block is read once after the examples, and each of its queries is written token by token."""
    settings, text, shape = read.settings, read.blocks(), language_model_shape(read.settings["lm"], "--lm")
    length = min(settings["block_length"], text.length)
    a_query = shape.flops(WRITTEN, BEGINNING + length) + shape.head_flops(WRITTEN)
    a_block = shape.flops(length, BEGINNING) + settings["queries_per_block"] * a_query
    return Cost("embed", min(settings["sample"], text.blocks) * a_block, weights=shape.weights)


def _embed(read: _Reading) -> Cost:
    shape, text = read.encoder(), read.blocks()
    vectors = VectorsSize(text.blocks, 128, 2 if read.settings["dtype"] == "float16" else 4)
    read.keep(shape, vectors)
    return Cost("embed", text.blocks * shape.flops(text.length), weights=shape.weights, disk_bytes=vectors.nbytes)


def _build_index(read: _Reading) -> Cost | None:
    """The vectors are linked from the embeddings, and mapped. What faiss has trained serves a refresh too."""
    vectors = read.made.vectors[read.stage.inputs["embeddings"]]
    read.keep(vectors=vectors)
    settings = IndexSettings(**{name: read.settings[name] for name in roles(IndexSettings)})
    rows = vectors.rows
    disk_bytes = INDEX_TYPES.load(settings.type, IndexType)().size(settings, int(rows), vectors.width)
    trained = 0.0
    match settings.type:
        case "exact":
            again = Cost("copy", vectors.nbytes)
        case "hnsw":
            inserts = rows * math.log2(max(2.0, rows)) * settings.ef_construction
            again = Cost("hnsw", inserts, held_bytes=disk_bytes, disk_bytes=disk_bytes)
        case "int8":
            again = Cost("gate", settings.recall_sample * rows * vectors.width, disk_bytes=disk_bytes)
        case "faiss":
            trained = FAISS_TRAINING * min(rows, SAMPLED_ROWS)
            again = Cost("faiss", rows, held_bytes=disk_bytes, disk_bytes=disk_bytes)
        case _:
            return None
    read.made.indexes[read.stage.name] = again
    return replace(again, work=again.work + trained)


def _pretrain(read: _Reading) -> Cost:
    settings, text, index = read.settings, read.blocks(), read.index()
    encoder = read.encoder()
    retriever = read.made.shapes.get(read.stage.inputs.get("retriever", ""), encoder)
    reader = language_model_shape(settings["reader_lm"]) if settings.get("reader_lm") else encoder
    trains_reader = (settings.get("reader") or ("frozen" if settings.get("reader_lm") else "trained")) == "trained"
    read.keep(retriever if settings.get("reader_lm") else reader, index)
    candidates = settings["candidates"]
    read_blocks = candidates - settings["null_document"]
    joint = SENTENCE + text.length
    hidden = min(settings["target_length"], text.length / 2) if settings.get("target") == "continuation" else 3.0
    row = (
        retriever.flops(SENTENCE)
        + read_blocks * retriever.flops(text.length)
        + candidates
        * (reader.flops(joint) + reader.head_flops(hidden))
        / (1 if trains_reader else 3)  # no backward pass
    )
    if settings.get("ict_weight"):
        pairs = settings["ict_batch_size"] / settings["batch_size"]
        again = 1 / 3 if settings["distill_start"] else 0.0  # the start has no backward pass
        row += pairs * (1 + again) * (retriever.flops(SENTENCE) + retriever.flops(text.length))
    search = 2 * index.rows * index.width / 3  # exact, and without a backward pass
    tokens = SENTENCE + read_blocks * text.length + candidates * joint * trains_reader
    name = read.stage.inputs.get("index", "")
    built = (name, read.made.indexes[name]) if name in read.made.indexes else None
    refreshed = Refreshed(text.blocks * retriever.flops(text.length), index.nbytes, built)
    weights = reader.weights * trains_reader + retriever.weights
    bytes_of_a_weight = 2 if settings.get("precision") == "bf16" and settings.get("reader_lm") else 4
    kept = 0 if trains_reader else bytes_of_a_weight * reader.weights + 1e9 * settings.get("reader_cache", 0)
    return _training(
        reader if trains_reader else retriever,
        settings["steps"],
        settings["batch_size"],
        row + search,
        tokens,
        weights,
        held_bytes=index.nbytes + kept,
        disk_bytes=2 * index.nbytes + 3 * 4 * retriever.weights,
        refreshed=refreshed,
    )


def _finetune(read: _Reading) -> Cost:
    settings, shape = read.settings, read.encoder()
    read.keep(shape, read.index())
    steps = settings["steps"] or round((settings.get("epochs") or 1) * questions_of(settings) / settings["batch_size"])
    row = shape.flops(SENTENCE) + settings["reader_beam"] * shape.flops(settings["reader_length"])
    row += 2 * read.index().rows * read.index().width / 3
    tokens = SENTENCE + settings["reader_beam"] * settings["reader_length"]
    return _training(
        shape, max(1, steps), settings["batch_size"], row, tokens, 2 * shape.weights, held_bytes=read.index().nbytes
    )


NATURAL_QUESTIONS = 79_168
"""Training questions of NQ-open, for a plan that names no file."""


def questions_of(settings: Mapping[str, Any]) -> int:
    """Number of questions of the stage's file."""
    return len(read_questions(settings["questions"])) if settings.get("questions") else NATURAL_QUESTIONS


_COSTS: Mapping[str, Callable[[_Reading], Cost | None]] = {
    "chunk": _chunk,
    "tag": _tag,
    "mlm-init": _mlm,
    "condenser-init": _condenser,
    "retromae-init": _retromae,
    "ict-init": _ict,
    "generate-queries": _generate_queries,
    "embed": _embed,
    "build-index": _build_index,
    "pretrain": _pretrain,
    "finetune": _finetune,
}
