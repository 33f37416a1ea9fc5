"""`realmctl tag`: find the salient spans that pre-training masks."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.deviations import TagDeviation, explained
from realmctl.errors import ConfigError, InputError
from realmctl.execution.shards import Executor
from realmctl.log import progress, say
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting

if TYPE_CHECKING:
    from realmctl.spans.salient import Tagger
    from realmctl.spans.tagged_sentences import SpanRules, TaggedSentence

WITH_MODEL, WITHOUT_MODEL = ("spacy", "hf"), ("auto", "anchors", "rules")
BLOCKS_PER_UNIT = 512


class Tag(Stage):
    """Find salient spans: the names and dates that pre-training hides.

    The blocks may come from another corpus than the blocks that pre-training retrieves, such as CC-News in the paper.
    """

    makes = "spans"
    headline = ("spans_per_block", "spans", "tagger")
    version = 3  # 2: degrees such as 18°S are not names; 3: auto decides by document

    blocks: Artifact = reads("blocks", help="Blocks whose sentences become queries.")
    tagger: str = setting(
        "Tagger that finds the names: anchors (links of a wiki dump), rules (capital letters), spacy:NAME_OR_PATH, or"
        " hf:NAME_OR_PATH (token classification). auto: anchors for a document that has links, or else rules.",
        default="auto",
    )
    dates: bool = setting("Find dates too, by rules.", default=True)
    labels: tuple[str, ...] = setting(
        "Labels of the spans to keep; repeat the option for several. Default: all but numbers and amounts.", default=()
    )
    max_masks: int = setting("Longest span, in wordpieces. Longer spans are dropped.", default=10, at_least=1)
    query_length: int = setting(
        "Longest query in wordpieces, [CLS] and [SEP] included. Spans beyond it are dropped.", default=96, at_least=3
    )
    official: tuple[TagDeviation, ...] = setting(
        explained(TagDeviation),
        default=(),
    )
    workers: int = runtime(help_texts.WORKERS + " The hf tagger runs in one process.", default=0, at_least=0)
    executor: Executor = runtime(help_texts.EXECUTOR, default="local")
    device: str = runtime("Device of the hf tagger: auto, cpu or cuda:N.", default="auto", check=check_device)

    def check(self) -> None:
        kind, _, model = self.tagger.partition(":")
        if kind not in (WITH_MODEL if model else WITHOUT_MODEL):
            raise ConfigError(
                f"--tagger {self.tagger}: use auto, anchors, rules, spacy:NAME_OR_PATH or hf:NAME_OR_PATH."
            )

    def origin(self) -> Origin:
        """Return the origin. A tagging model is identified by its content instead of its name."""
        from realmctl.artifacts.hashing import digest_source

        origin, folder = super().origin(), _model_folder(self.tagger)
        if folder is None:
            return origin
        return dataclasses.replace(origin, inputs={**origin.inputs, "tagger": digest_source(folder)})

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.corpus.corpus import Corpus
        from realmctl.execution.shards import map_units
        from realmctl.spans.spans_file import SpansWriter
        from realmctl.spans.tagged_sentences import COUNTED, SpanRules
        from realmctl.tokens import wordpiece

        corpus = Corpus(self.blocks)
        rules = SpanRules(self.dates, self.labels, self.max_masks, self.query_length, self.official)
        units = ((start, start + BLOCKS_PER_UNIT) for start in range(0, len(corpus), BLOCKS_PER_UNIT))
        workers = 1 if self.tagger.startswith("hf:") else self.workers
        tagged = map_units(
            _tag_unit,
            units,
            workers,
            initializer=_start_worker,
            initargs=(self.blocks, self.tagger, rules, self.device),
            executor=self.executor,
        )
        counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        with (
            SpansWriter(out.file, wordpiece.load(self.blocks.path).dtype) as spans,
            progress(len(corpus), "tag", "blocks") as bar,
        ):
            for sentences, unit_counts in tagged:
                for sentence in sentences:
                    spans.write(sentence, corpus.uid[sentence.block])
                counts.update(unit_counts)
                bar.advance(unit_counts["blocks"])
        tagger = _tagger_used(self.tagger, counts)
        _require_spans(counts, self.blocks, tagger)
        for name in filter(lambda name: name.startswith("tokenizer/"), self.blocks.manifest.files):
            out.link(name, self.blocks.file(name))
        return {"tagger": tagger, **counts, "spans_per_block": counts["spans"] / counts["blocks"]}


class _Worker:
    """The tagger and the tokenizer of one process, which tags units of `blocks`."""

    def __init__(self, blocks: Artifact, tagger: str, rules: SpanRules, device: str) -> None:
        from realmctl.corpus.corpus import Corpus
        from realmctl.tokens import wordpiece

        self.corpus = Corpus(blocks)
        self.wordpiece = wordpiece.load(blocks.path)
        self.tagger = _make_tagger(tagger, device)
        self.rules = rules

    def tag(self, start: int, stop: int) -> tuple[list[TaggedSentence], Counter[str]]:
        """Return the spans of the documents that begin in blocks `start` to `stop`, and counts by outcome."""
        from realmctl.corpus.stored_blocks import by_document, documents_beginning_in
        from realmctl.spans.tagged_sentences import tagged_sentences
        from realmctl.spans.taggers import has_anchors

        counts: Counter[str] = Counter()
        first, blocks = documents_beginning_in(self.corpus, start, stop)
        found = list(tagged_sentences(blocks, self.tagger, self.wordpiece, self.rules, counts, first))
        for document in by_document(blocks):
            counts["documents_with_anchors" if has_anchors(document) else "documents_without_anchors"] += 1
        return found, counts


_worker: _Worker


def _start_worker(blocks: Artifact, tagger: str, rules: SpanRules, device: str) -> None:
    global _worker
    _worker = _Worker(blocks, tagger, rules, device)


def _tag_unit(unit: tuple[int, int]) -> tuple[list[TaggedSentence], Counter[str]]:
    return _worker.tag(*unit)


def _tagger_used(tagger: str, counts: Counter[str]) -> str:
    """Return what `auto` came to, or the tagger that was named."""
    if tagger != "auto":
        return tagger
    with_anchors, without = counts["documents_with_anchors"], counts["documents_without_anchors"]
    say(f"tag: --tagger auto tagged {with_anchors} documents by their link anchors, and {without} without any by rules")
    return "anchors and rules" if with_anchors and without else "anchors" if with_anchors else "rules"


def _make_tagger(tagger: str, device: str) -> Tagger:
    from realmctl.spans.taggers import AnchorTagger, AutoTagger, RuleTagger, SentenceTagger, spacy_finder

    kind, _, model = tagger.partition(":")
    if kind == "spacy":
        return SentenceTagger(spacy_finder(model))
    if kind == "hf":
        from realmctl.models.ner import EntityRecognizer

        return SentenceTagger(EntityRecognizer(_hub_folder(model), device=device))
    taggers: dict[str, type[Tagger]] = {"auto": AutoTagger, "anchors": AnchorTagger, "rules": RuleTagger}
    return taggers[kind]()


def _model_folder(tagger: str) -> Path | None:
    """Path of a tagger's model; None for a tagger without one. Raises InputError when it does not exist."""
    from realmctl.spans.taggers import find_spacy_model

    kind, _, model = tagger.partition(":")
    if kind == "spacy":
        return find_spacy_model(model)
    return _hub_folder(model) if kind == "hf" else None


def _hub_folder(model: str) -> Path:
    from realmctl.pipeline.sources import localise

    return Path(localise(model, (), True, "--tagger hf"))


def _require_spans(counts: Counter[str], blocks: Artifact, tagger: str) -> None:
    if counts["spans"]:
        return
    dropped = [f"{name} {count}" for name, count in counts.items() if name.startswith("dropped_") and count]
    raise InputError(
        f"--tagger {tagger} finds no salient span in the {counts['blocks']} blocks of {blocks} "
        f"({', '.join(dropped) or 'none dropped'}), so there is nothing to pre-train on. "
        "Try another --tagger, or other --labels, --max-masks or --query-length."
    )
