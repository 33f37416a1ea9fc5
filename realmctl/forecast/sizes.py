"""Sizes of what the stages of a chain read and make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from realmctl.models.bert import foreign_config
from realmctl.models.bert.files import read_config, scratch_config
from realmctl.models.bert.limits import weight_count
from realmctl.pipeline.sources import localise

WORDPIECES_PER_BYTE = {"dump": 0.105, "text": 0.21}
"""Wordpieces that a byte becomes: of wikitext, most of which is markup, and of plain text. Measured on 5.8 MB of the English
Wikipedia: 2.9 MB of text, 601 thousand wordpieces."""
STORED_BYTES_PER_WORDPIECE = 4.6
"""Disk bytes of blocks, for each wordpiece: its number (2 bytes), and its share of the compressed text and the offsets. Measured, as the
next one, on 14 million wordpieces of Wikipedia's sentences (docs/results/scale/report.md)."""
TAGGED_BYTES_PER_WORDPIECE = 5.1
"""Disk bytes of spans, for each wordpiece of the blocks: its sentence is stored again if a span is in it."""


@dataclass(frozen=True)
class Text:
    """Blocks. `source_bytes` are those of the corpus, decompressed; `length` is the mean of a block in wordpieces."""

    source_bytes: float
    blocks: float
    length: float

    @property
    def wordpieces(self) -> float:
        return self.blocks * self.length

    def scaled(self, factor: float) -> Text:
        """The same kind of text, `factor` times as much of it."""
        return Text(self.source_bytes * factor, self.blocks * factor, self.length)


@dataclass(frozen=True)
class EncoderShape:
    """Shape of a BERT."""

    layers: int
    hidden: int
    intermediate: int
    vocabulary: int

    @property
    def weights(self) -> float:
        return weight_count(self.layers, self.hidden, self.intermediate, self.vocabulary, 512, 2)

    def flops(self, length: float, before: float = 0.0) -> float:
        """Floating-point operations of the forward pass over one sequence: the products, and the attention. It attends to the tokens `before` too."""
        products = 8 * self.hidden**2 + 4 * self.hidden * self.intermediate
        return self.layers * (products * length + 4 * self.hidden * length * (before + length))

    def head_flops(self, masks: float) -> float:
        """Floating-point operations of the vocabulary's logits at some positions."""
        return masks * (2 * self.hidden**2 + 2 * self.hidden * self.vocabulary)


@dataclass(frozen=True)
class VectorsSize:
    """Embeddings of blocks."""

    rows: float
    width: int
    bytes_each: int = 4

    @property
    def nbytes(self) -> float:
        return self.rows * self.width * self.bytes_each


def text_of_bytes(source_bytes: float, most: int, is_dump: bool) -> Text:
    """Blocks of at most `most` wordpieces that a corpus of that many bytes becomes."""
    length = 0.91 * most  # as measured for 288: blocks end at sentences
    wordpieces = source_bytes * WORDPIECES_PER_BYTE["dump" if is_dump else "text"]
    return Text(source_bytes, max(1.0, wordpieces / length), length)


def text_of_blocks(blocks: float, most: int) -> Text:
    """A number of blocks, and the plain text that they are made of."""
    length = 0.91 * most
    return Text(blocks * length / WORDPIECES_PER_BYTE["text"], blocks, length)


def encoder_shape(bert: str, vocabulary: int) -> EncoderShape:
    """Shape of a BERT that a stage names: scratch:SIZE, a folder, or a hub id whose configuration is fetched.

    Raises:
        ConfigError: the size is unknown.
        InputError: it is found neither here nor on the hub, or its config.json does not describe a BERT.
    """
    if bert.startswith("scratch:"):
        config = scratch_config(bert.removeprefix("scratch:"), vocabulary)
    else:
        folder = localise(bert, ("scratch:",), True, "--bert", files=("config.json",))
        config = read_config(Path(folder))
    return EncoderShape(config.num_hidden_layers, config.hidden_size, config.intermediate_size, config.vocab_size)


def language_model_shape(name: str, flag: str = "--reader-lm") -> EncoderShape:
    """Shape of a causal or sequence-to-sequence model: a folder, or a hub id whose configuration is fetched.

    A sequence-to-sequence model counts as its encoder: its decoder reads few tokens. `flag` is the option that names it, for messages.

    Raises InputError: it is found neither here nor on the hub, or its config.json does not describe a language model.
    """
    folder = Path(localise(name, (), True, flag, files=("config.json",)))
    config = foreign_config.read_config(folder, "language model")
    inner = next(
        (size for key in ("intermediate_size", "d_ff", "n_inner") if (size := getattr(config, key, None))),
        4 * config.hidden_size,
    )
    return EncoderShape(config.num_hidden_layers, config.hidden_size, inner, config.vocab_size)
