"""From tagged passages to sentences that can become queries: every span in one sentence, on whole wordpieces,
maskable.

Each span that cannot be masked is dropped and counted by reason, so that a corpus which loses most of its
spans says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from realmctl.text.dates import find_dates
from realmctl.text.salient import Passage, Span, Tagger, covered_tokens, resolve_overlaps, split_by_sentence

NUMERIC_LABELS = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "MONEY", "TIME"})
"""OntoNotes labels (spaCy's English pipelines) that are neither names nor dates; kept only when asked for."""

COUNTED = (
    *("blocks", "blocks_without_spans", "sentences", "sentences_with_spans", "spans", "dropped_crossing"),
    *("dropped_unaligned", "dropped_too_long", "dropped_past_query", "dropped_overlapping"),
)


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence with at least one salient span.

    `row` of its passage, `number` within it, `text`; `tokens`: its wordpiece ids, no specials; `spans`:
    characters of `text`; `token_spans`: (first, last + 1) wordpieces, one for each of `spans`.
    """

    row: int
    number: int
    text: str
    tokens: list[int]
    spans: list[Span]
    token_spans: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class SpanRules:
    """Which spans are salient: `labels` (none given: all but the numeric ones), the `dates` rules, and the
    limits.

    `max_masks`: longest span in wordpieces. `query_length`: wordpieces of a query, [CLS] and [SEP] included.
    """

    dates: bool = True
    labels: tuple[str, ...] = ()
    max_masks: int = 10
    query_length: int = 96

    def wants(self, label: str) -> bool:
        return label in self.labels if self.labels else label not in NUMERIC_LABELS


def tagged_sentences(
    passages: Sequence[Passage], tagger: Tagger, tokenizer: Tokenizer, rules: SpanRules, counts: Counter[str]
) -> Iterator[TaggedSentence]:
    """The sentences of `passages` that hold a salient span, in order; `counts` is added to.

    Counted are the names in COUNTED and spans_LABEL. Reasons to drop a span: crossing (no one sentence holds
    it), unaligned (no whole wordpiece within it), too_long (more than `max_masks` wordpieces), past_query
    (ends beyond what a query holds), overlapping (a longer one has its place).
    """
    for row, (passage, names) in enumerate(zip(passages, tagger.tag(passages), strict=True)):
        spans = {
            span for span in [*names, *(_dates(passage) if rules.dates else ())] if rules.wants(span.label)
        }
        by_sentence, crossing = split_by_sentence(spans, passage.sentences)
        counts.update(blocks=1, sentences=len(passage.sentences), dropped_crossing=crossing)
        before = counts["sentences_with_spans"]
        for number, (text, held) in enumerate(zip(passage.sentence_texts(), by_sentence, strict=True)):
            if held and (sentence := _maskable(row, number, text, held, tokenizer, rules, counts)):
                counts.update(["sentences_with_spans", *("spans" for _ in sentence.spans)])
                counts.update(f"spans_{span.label}" for span in sentence.spans)
                yield sentence
        counts["blocks_without_spans"] += counts["sentences_with_spans"] == before


def _dates(passage: Passage) -> Iterator[Span]:
    for offset, end in passage.sentences:
        for span in find_dates(passage.text[offset:end]):
            yield Span(offset + span.start, offset + span.end, span.label)


def _maskable(
    row: int,
    number: int,
    text: str,
    spans: Iterable[Span],
    tokenizer: Tokenizer,
    rules: SpanRules,
    counts: Counter[str],
) -> TaggedSentence | None:
    encoding = tokenizer.encode(text, add_special_tokens=False)
    places: dict[Span, tuple[int, int]] = {}
    for span in spans:
        place = covered_tokens(span, encoding.offsets)
        if reason := _misfit(place, rules):
            counts[f"dropped_{reason}"] += 1
        elif place:
            places[span] = place
    kept = resolve_overlaps(places)
    counts["dropped_overlapping"] += len(places) - len(kept)
    if not kept:
        return None
    return TaggedSentence(row, number, text, encoding.ids, kept, [places[span] for span in kept])


def _misfit(place: tuple[int, int] | None, rules: SpanRules) -> str | None:
    if place is None:
        return "unaligned"
    first, stop = place
    if stop - first > rules.max_masks:
        return "too_long"
    return "past_query" if stop > rules.query_length - 2 else None
