"""`realmctl tag`: find the salient spans that pre-training masks."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from realmctl.artifact import Artifact, Origin, Writer
from realmctl.errors import ConfigError, InputError
from realmctl.log import progress, say
from realmctl.stage import Stage, knob, reads, setting

if TYPE_CHECKING:
    from realmctl.records import Records
    from realmctl.text.queries import SpanRules
    from realmctl.text.salient import Passage, Tagger

BLOCKS_PER_UNIT = 512
BLOCKS_SEARCHED_FOR_ANCHORS = 1024

Row = tuple[dict[str, Any], list[int], list[tuple[int, int]]]
"""A sentence on its way to the artifact: record, wordpiece ids, wordpieces of each span."""


class Tag(Stage):
    """Find salient spans: the names and dates in each sentence that pre-training masks.

    The blocks may be of another corpus than the one retrieved from, as the paper's CC-News is.
    """

    makes = "spans"

    blocks: Artifact = reads("blocks", help="Blocks whose sentences become queries.")
    tagger: str = setting(
        "Who finds the names: anchors (links of a wiki dump), rules (capitals), spacy:NAME_OR_PATH, hf:NAME_OR_PATH"
        " (token classification); auto is anchors where the blocks have them, or else rules.",
        default="auto",
    )
    dates: bool = setting("Find dates too, by rule.", default=True)
    labels: tuple[str, ...] = setting(
        "Keep only spans with these labels; default all but numbers and amounts.", default=()
    )
    max_masks: int = setting("Longest span in wordpieces; longer ones are dropped.", default=10)
    query_length: int = setting(
        "Wordpieces of a query, [CLS] and [SEP] included; spans beyond are dropped.", default=96
    )
    workers: int = knob("Processes; 0 = all cores. The hf tagger runs in one.", default=0)
    device: str = knob("Where the hf tagger runs: auto, cpu or cuda:N.", default="auto")

    def check(self) -> None:
        kind, _, model = self.tagger.partition(":")
        if kind not in ("auto", "anchors", "rules", "spacy", "hf") or (kind in ("spacy", "hf")) != bool(
            model
        ):
            raise ConfigError(
                f"--tagger {self.tagger}: use auto, anchors, rules, spacy:NAME_OR_PATH or hf:NAME_OR_PATH."
            )
        if self.max_masks < 1 or self.query_length < 3:
            raise ConfigError(
                "--max-masks must be at least 1, and --query-length at least 3: [CLS], a wordpiece and [SEP]."
            )

    def origin(self) -> Origin:
        """A tagging model counts by its content, not by its name."""
        from realmctl.hashing import digest_source

        origin, folder = super().origin(), _model_folder(self.tagger)
        if folder is None:
            return origin
        return dataclasses.replace(origin, inputs={**origin.inputs, "tagger": digest_source(folder)})

    def run(self, out: Writer) -> Mapping[str, Any]:
        import numpy as np

        from realmctl.records import Records
        from realmctl.shards import map_units
        from realmctl.text.queries import COUNTED, SpanRules
        from realmctl.text.spans_file import SpansWriter

        records = Records(self.blocks.file("blocks.jsonl.zst"))
        uids = np.load(self.blocks.file("uids.npy"), allow_pickle=False)
        vocabulary_size = _tokenizer(self.blocks.path).get_vocab_size()
        tagger = _chosen_tagger(self.tagger, records)
        rules = SpanRules(self.dates, self.labels, self.max_masks, self.query_length)
        units = ((start, start + BLOCKS_PER_UNIT) for start in range(0, len(records), BLOCKS_PER_UNIT))
        workers = 1 if tagger.startswith("hf:") else self.workers
        tagged = map_units(
            _tag_unit,
            units,
            workers,
            initializer=_start_worker,
            initargs=(self.blocks.path, tagger, rules, self.device),
        )
        counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        with SpansWriter(out.file, vocabulary_size) as spans, progress(len(records), "tag", "blocks") as bar:
            for rows, unit_counts in tagged:
                for record, tokens, places in rows:
                    spans.write(record, uids[record["block"]], tokens, places)
                counts.update(unit_counts)
                bar.advance(unit_counts["blocks"])
        _require_spans(counts, self.blocks, tagger)
        for name in filter(lambda name: name.startswith("tokenizer/"), self.blocks.manifest["files"]):
            out.link(name, self.blocks.file(name))
        return {"tagger": tagger, **counts, "spans_per_block": counts["spans"] / counts["blocks"]}


class _Worker:
    """What one process needs to tag units of the blocks at `blocks`."""

    def __init__(self, blocks: Path, tagger: str, rules: SpanRules, device: str) -> None:
        from realmctl.records import Records

        self.records = Records(blocks / "blocks.jsonl.zst")
        self.tokenizer = _tokenizer(blocks)
        self.tagger = _make_tagger(tagger, device)
        self.rules = rules

    def tag(self, start: int, stop: int) -> tuple[list[Row], Counter[str]]:
        """The tagged sentences of the documents that begin in blocks `start` to `stop`, and what was
        counted.
        """
        from realmctl.text.queries import tagged_sentences

        counts: Counter[str] = Counter()
        first, passages = _documents_beginning_in(self.records, start, stop)
        rows: list[Row] = []
        for found in tagged_sentences(passages, self.tagger, self.tokenizer, self.rules, counts):
            block = self.records[first + found.row]
            record = {
                "block": first + found.row,
                "id": block["id"],
                "title": block["title"],
                "sentence": found.number,
                "text": found.text,
                "spans": [list(span) for span in found.spans],
            }
            rows.append((record, found.tokens, found.token_spans))
        return rows, counts


_worker: _Worker


def _start_worker(blocks: Path, tagger: str, rules: SpanRules, device: str) -> None:
    global _worker
    _worker = _Worker(blocks, tagger, rules, device)


def _tag_unit(unit: tuple[int, int]) -> tuple[list[Row], Counter[str]]:
    return _worker.tag(*unit)


def _documents_beginning_in(records: Records, start: int, stop: int) -> tuple[int, list[Passage]]:
    """Row of the first document that begins in the range, and all blocks of those that do: a document has one
    unit.

    So a unit sees whole documents, and what it finds does not depend on where units were cut.
    """
    from realmctl.text.salient import Passage

    def begins(row: int) -> bool:
        return row == 0 or records[row]["document"] != records[row - 1]["document"]

    stop = min(stop, len(records))
    first = next((row for row in range(start, stop) if begins(row)), stop)
    last = (
        next((row for row in range(stop, len(records)) if begins(row)), len(records))
        if first < stop
        else stop
    )
    return first, [Passage.from_record(records[row]) for row in range(first, last)]


def _chosen_tagger(tagger: str, records: Records) -> str:
    if tagger != "auto":
        return tagger
    with_anchors = any(
        records[row]["anchors"] for row in range(min(len(records), BLOCKS_SEARCHED_FOR_ANCHORS))
    )
    chosen, why = ("anchors", "have link anchors") if with_anchors else ("rules", "have no link anchors")
    say(f"tag: --tagger auto means {chosen} here, for the blocks {why}")
    return chosen


def _make_tagger(tagger: str, device: str) -> Tagger:
    from realmctl.text.taggers import AnchorTagger, RuleTagger, SentenceTagger, spacy_finder

    kind, _, model = tagger.partition(":")
    if kind == "spacy":
        return SentenceTagger(spacy_finder(model))
    if kind == "hf":
        from realmctl.nn.ner import EntityFinder

        return SentenceTagger(EntityFinder(_hub_folder(model), device=device))
    return AnchorTagger() if kind == "anchors" else RuleTagger()


def _model_folder(tagger: str) -> Path | None:
    """Where the model of a tagger lies; None for the taggers without one. Raises InputError when it is not
    there.
    """
    from realmctl.text.taggers import find_spacy_model

    kind, _, model = tagger.partition(":")
    if kind == "spacy":
        return find_spacy_model(model)
    return _hub_folder(model) if kind == "hf" else None


def _hub_folder(model: str) -> Path:
    from realmctl.sources import localise

    return Path(localise(model, (), True, "--tagger hf"))


def _tokenizer(blocks: Path) -> Any:
    """The blocks' own wordpiece; a literal "[SEP]" in text stays text (`encode_special_tokens`)."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(blocks / "tokenizer/tokenizer.json"))
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _require_spans(counts: Counter[str], blocks: Artifact, tagger: str) -> None:
    if counts["spans"]:
        return
    dropped = ", ".join(
        f"{name} {count}" for name, count in counts.items() if name.startswith("dropped_") and count
    )
    raise InputError(
        f"no salient span in the {counts['blocks']} blocks of {blocks} by --tagger {tagger} (dropped: {dropped or 'none'}), so there "
        "is nothing to pre-train on. Try another --tagger, or other --labels, --max-masks or --query-length."
    )
