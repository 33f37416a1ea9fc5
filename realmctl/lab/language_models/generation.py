"""Queries that a language model writes for blocks: training data for retrievers where nobody has labelled any.

The prompt has a few examples, and the queries with the best mean log-probability may be kept (InPars, Bonifacio et al. 2022, arXiv
2202.05144). A query may have to find its block again (Promptagator, Dai et al. 2022, arXiv 2209.11755, section 3.3). What is made is a folder in
BEIR's layout, as GPL's (Wang et al. 2022, arXiv 2112.07577).
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, Writer
from realmctl.artifacts.disk import read_small
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.execution.batches import batched
from realmctl.extras.chat.asking import Asker, Request
from realmctl.extras.chat.settings import SERVED
from realmctl.extras.chat.texts import shortened, without_thoughts
from realmctl.extras.ir.ranking.trec import trec_name
from realmctl.lab.language_models.generation_settings import GenerationSettings
from realmctl.lab.language_models.models.causal import require_causal
from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.models.model import LanguageModel
from realmctl.lab.language_models.models.prompts import check_positions
from realmctl.lab.language_models.models.writing import PromptWriter
from realmctl.log import progress, say
from realmctl.models.precision import autocast, frozen_dtype, pick_device
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.embedding.embedding import spread
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.training.data.own_blocks import rows_by_document
from realmctl.training.evaluation.held_out import left_out

EXAMPLES = """\
Write a question that the text answers.

Text: The koala sleeps up to twenty hours a day, because the leaves of the eucalyptus give it little energy. It rarely drinks water.
Question: Why do koalas sleep so much?

Text: A tyre loses about one psi of pressure each month. Check it before you drive, while the tyre is cold: unscrew the cap of the valve, press \
the gauge onto it, and compare the number with the label in the door.
Question: How do I check the pressure of a car tyre?

Text: In a trial of 2,100 patients, those who were given aspirin within a day of a stroke had a second stroke less often (3.1 %) than those who \
were given a placebo (4.6 %).
Question: Does aspirin lower the risk of a second stroke?

Text: Photosynthesis is the process by which plants turn light, water and carbon dioxide into sugar and oxygen. It takes place in the \
chloroplasts.
Question: What is photosynthesis?

Text: {title}
{block}
Question:"""
"""The prompt of a causal model. A title that is missing takes its line break with it."""
BLOCK_ALONE = "{title} {block}"
"""The prompt of T5's kind: those that write queries were trained on passages alone (docT5query, GenQ)."""
PLACE = re.compile(r"\{(title|block)\}(\s*)")
END = re.compile(r"[?？؟]|\S[^\S\n]*\n")
"""A query ends with its first question mark, or with a line break after its first word."""
END_OF_QUESTION = re.compile(r"[?？؟]")
LABEL = re.compile(r"^[\s*_#]*(?:question|query)[\s*_]*:[\s*_]*", re.IGNORECASE)
"""What chat models write before a question."""
CHARACTERS_OF_A_TOKEN = 4
SPARE_TOKENS = 32
"""Tokens beside the query that a chat model may write, such as a label."""
QUOTES = " \t\"'“”„«»*`"
FEWEST_WORDPIECES = 16
"""Shorter blocks are mostly headings, of which nothing can be asked."""
MAX_PROMPT_BYTES = 2**16


@dataclass(frozen=True)
class GeneratedQuery:
    """A query that was written for a block: the block's row, its number among the block's queries, and its mean log-probability, which a server does not tell."""

    row: int
    number: int
    text: str
    log_prob: float | None
    ended: bool


class Work(Protocol):
    """The blocks that are asked of, by row, and what writes queries for them with a prompt."""

    corpus: Corpus
    rows: list[int]
    prompt: str

    def written(self, out: Writer) -> list[GeneratedQuery]:
        """Write all queries, by rising row. What an interrupted run has written is not written again."""

    def counts(self) -> Mapping[str, int]:
        """What else is counted."""

    def forget(self) -> None:
        """Have the same command write all again, because nothing that was written is of use."""


def generate(settings: GenerationSettings, out: Writer) -> dict[str, float]:
    """Write queries for blocks, as a BEIR folder with the split train: queries.jsonl, qrels/train.tsv and corpus.jsonl.

    A run that was interrupted continues where it stopped. dropped.jsonl has what was dropped, with the reason, and prompt.txt the prompt.

    Returns:
        Numbers of blocks that were asked of, of queries that were written and kept, and that were dropped for each reason; the mean
        log-probability of those that were kept.

    Raises:
        ConfigError: the prompt has no place for a block, or is too long for the model.
        InputError: the language model cannot be used, or no query is kept.
        NotFiniteError: the model computes no finite numbers.
    """
    work: Work = Served(settings) if settings.endpoint else _Work(settings)
    written = work.written(out)
    kept, dropped = sorted_out(written, work.corpus, work.prompt)
    if settings.round_trip is not None:
        found = _found_again(kept, settings)
        dropped += [(query, "not_found") for query in kept if query not in found]
        kept = [query for query in kept if query in found]
    best = {*sorted(kept, key=lambda query: -(query.log_prob or 0))[: math.ceil(settings.keep * len(kept))]}
    dropped += [(query, "unlikely") for query in kept if query not in best]
    kept = [query for query in kept if query in best]
    counts = Counter(reason for _, reason in dropped)
    if not kept:
        work.forget()
        raise InputError(
            f"{settings.lm.removeprefix(SERVED)} wrote {len(written)} queries, and none is left ({', '.join(f'{name} {n}' for name, n in counts.items())}). Use a "
            "larger model, or look at what it writes in another prompt: generate-queries --prompt. All are asked again then."
        )
    _write(kept, dropped, work, out)
    known = [query.log_prob for query in kept if query.log_prob is not None]
    return {
        "queries": len(kept),
        "asked_blocks": len(work.rows),
        "written": len(written),
        **{f"dropped_{name}": counts[name] for name in sorted(counts)},
        **({"log_prob": round(float(np.mean(known)), 6)} if known else {}),
        **work.counts(),
    }


class _Work:
    """The blocks that are asked of, and the language model that writes."""

    def __init__(self, settings: GenerationSettings) -> None:
        self.settings, self.corpus = settings, Corpus(settings.blocks)
        self.device = pick_device(settings.device)
        dtype = frozen_dtype(self.device, settings.precision)
        model = load_language_model(Path(settings.lm), dtype=dtype, attention=None)
        if not model.reads_source_apart:
            require_causal(model)
        self.model = model.to(self.device).eval()
        self.prompt = read_prompt(settings.prompt, self.model.reads_source_apart)
        self.rows = drawn(self.corpus, settings.sample, settings.seed, settings.documents, settings.held_out)
        blocks = self.corpus.blocks(self.rows)
        self.prompts = {
            row: prompt_of(block, self.prompt, self.model, settings.block_length) for row, block in blocks.items()
        }
        longest = max(map(len, self.prompts.values())) + settings.query_length
        check_positions(self.model, longest, "--prompt, --block-length and --query-length")
        beginning = self.model.ids(self.prompt[: PLACE.search(self.prompt).start()])  # type: ignore[union-attr]
        self.writer = PromptWriter(
            self.model,
            begun(self.model, beginning),
            settings.query_length,
            lambda text: END.search(text.lstrip()) is not None,
            settings.temperature,
        )

    def batches(self) -> list[Sequence[int]]:
        """Rows whose prompts are about equally long."""
        order = sorted(self.rows, key=lambda row: (len(self.prompts[row]), row))
        size = max(1, self.settings.batch_size // self.settings.queries_per_block)
        return spread(batched(order, size))

    def write(self, rows: Sequence[int]) -> list[GeneratedQuery]:
        """Write the queries of some blocks. The random numbers of a query depend on the seed, the block's row and the query's number."""
        each, longest = self.settings.queries_per_block, self.settings.query_length
        uniform_BKT = np.stack(
            [np.random.default_rng([self.settings.seed, row]).random((each, longest)) for row in rows]
        )
        with autocast(self.device, self.settings.precision):
            texts = self.writer.write([self.prompts[row] for row in rows], uniform_BKT)
        scores = torch.tensor([one.log_prob for own in texts for one in own])
        require_finite_scores(scores, self.settings.lm)
        return [
            GeneratedQuery(row, number, query_text(self.model.text(one.tokens)), round(one.log_prob, 4), one.ended)
            for row, own in zip(rows, texts, strict=True)
            for number, one in enumerate(own)
        ]

    def counts(self) -> Mapping[str, int]:
        return {}

    def written(self, out: Writer) -> list[GeneratedQuery]:
        self._journal = journal = out.scratch("written") / "queries.jsonl"
        known = _read_journal(journal)
        found: list[GeneratedQuery] = []
        with (
            journal.open("a", encoding="utf-8") as file,
            progress(len(self.rows), "writing queries", "blocks") as bar,
        ):
            for batch in self.batches():
                if own := known.get(tuple(batch)):
                    bar.skip(len(batch))
                else:
                    own = self.write(batch)
                    # Newline first: a kill may have cut the previous line short.
                    file.write("\n" + json.dumps([[*batch], [asdict(query) for query in own]]))
                    file.flush()
                    os.fsync(file.fileno())
                    bar.advance(len(batch))
                found += own
        return sorted(found, key=lambda query: (query.row, query.number))

    def forget(self) -> None:
        self._journal.unlink()


class Served:
    """The same by a server. A prompt is one message, and the answer's first question is the query."""

    def __init__(self, settings: GenerationSettings) -> None:
        self.settings, self.corpus = settings, Corpus(settings.blocks)
        self.prompt = read_prompt(settings.prompt)
        self.rows = drawn(self.corpus, settings.sample, settings.seed, settings.documents, settings.held_out)
        self._counts: Mapping[str, int] = {}

    def counts(self) -> Mapping[str, int]:
        return self._counts

    def written(self, out: Writer) -> list[GeneratedQuery]:
        requests = {(row, number): one for row in self.rows for number, one in enumerate(self._requests(row))}
        with (
            Asker(self.settings, self.settings.lm, out, f"{len(self.rows):,} blocks") as self._asker,
            progress(len(requests), "writing queries", "queries") as bar,
        ):
            replies = self._asker.answers([*requests.values()], bar)
            self._counts = self._asker.keep()
        found = []
        for (row, number), request in requests.items():
            text, ended = asked_in(replies[request.id].text), replies[request.id].ended
            found.append(GeneratedQuery(row, number, text, None, ended or bool(END_OF_QUESTION.search(text))))
        return found

    def forget(self) -> None:
        self._asker.forget()

    def _requests(self, row: int) -> Iterator[Request]:
        block, settings = self.corpus.block(row), self.settings
        text = shortened(block.text, CHARACTERS_OF_A_TOKEN * settings.block_length)
        message = {"role": "user", "content": filled(self.prompt, block.title, text)}
        for number in range(settings.queries_per_block):
            seed = int(np.random.default_rng([settings.seed, row, number]).integers(2**31))
            longest = settings.query_length + SPARE_TOKENS
            yield Request(f"{block.id}:{number}", (message,), longest, settings.temperature, seed)


def asked_in(answer: str) -> str:
    """Return the query of a chat model's answer: of its first line with a question mark, else of its first line; without thoughts and a label."""
    lines = [line.strip() for line in without_thoughts(answer).splitlines() if line.strip()]
    line = next((line for line in lines if END_OF_QUESTION.search(line)), lines[0] if lines else "")
    return query_text(LABEL.sub("", line))


def _read_journal(path: Path) -> dict[tuple[int, ...], list[GeneratedQuery]]:
    """The batches that an interrupted run has written."""
    found = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            rows, queries = json.loads(line)
            found[tuple(rows)] = [GeneratedQuery(**query) for query in queries]
        except (ValueError, TypeError):
            continue  # a line that a kill cut short
    return found


def read_prompt(path: Path | None, reads_source_apart: bool = False) -> str:
    """Return the prompt of a file, without the line break at its end, or the default, which is another one for models of T5's kind.

    Raises:
        ConfigError: it has not one place for the block.
        InputError: it is no text in UTF-8.
    """
    if path is None:
        return BLOCK_ALONE if reads_source_apart else EXAMPLES
    try:
        prompt = read_small(path, MAX_PROMPT_BYTES).decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"--prompt {path} is not text in UTF-8 ({error.reason}). Save it as UTF-8.") from None
    if prompt.count("{block}") != 1 or prompt.count("{title}") > 1:
        raise ConfigError(
            f"--prompt {path} has {{block}} {prompt.count('{block}')} times and {{title}} {prompt.count('{title}')} times. Write {{block}} once, "
            "where the text of a block stands, and {title} once at most."
        )
    return prompt


def prompt_of(block: Block, prompt: str, model: LanguageModel, longest: int) -> list[int]:
    """Return the tokens of the prompt with a block, of which at most `longest` tokens stand there."""
    offsets = model.tokenizer.encode(block.text, add_special_tokens=False).offsets
    text = block.text[: offsets[longest][0]].rstrip() if len(offsets) > longest else block.text
    ids = model.ids(filled(prompt, block.title, text))
    return ids if model.reads_source_apart else begun(model, ids)


def filled(prompt: str, title: str, text: str) -> str:
    """Return the prompt with a block. A title that is missing takes its line break with it."""
    values = {"title": title, "block": text}
    return PLACE.sub(lambda place: values[place[1]] + place[2] * bool(values[place[1]]), prompt)


def begun(model: LanguageModel, ids: list[int]) -> list[int]:
    """Return tokens with the one that begins a text, which a prompt may name itself."""
    return ids if ids[:1] == [model.special.start] else [model.special.start, *ids]


def drawn(corpus: Corpus, count: int, seed: int, documents: float = 1.0, held_out: Artifact | None = None) -> list[int]:
    """Return rows of blocks, by rising row: those that are long enough, or as many of them as are asked for, drawn at random. Of copies one is drawn.

    documents: the share of the blocks that the documents of these may have; below 1 whole documents are drawn first. held_out: questions whose
    documents are left out.

    Raises InputError if there are none.
    """
    rows: NDArray[np.int64] = np.flatnonzero(corpus.lengths >= FEWEST_WORDPIECES)
    others = left_out(held_out, corpus)
    rows = np.setdiff1d(rows, others)
    rows = rows[np.sort(np.unique(corpus.uid[rows], return_index=True)[1])]
    if not len(rows):
        raise InputError(
            f"{corpus.artifact} has no block of {FEWEST_WORDPIECES} wordpieces or more{' outside the documents of --held-out' if held_out else ''}, of which something can be "
            "asked. Chunk documents with longer texts."
        )
    rng = np.random.default_rng(seed)
    if documents < 1:
        rows = rows[np.isin(rows, _of_documents(corpus, documents, rng, others))]
        if not len(rows):
            raise InputError(
                f"{corpus.artifact}: no document with text enough has at most {documents:.0%} of the blocks, so none can be set aside. Use more documents, or "
                "a greater --documents."
            )
    chosen = rng.permutation(rows)[:count]
    return [int(row) for row in np.sort(chosen)]


def _of_documents(
    corpus: Corpus, share: float, rng: np.random.Generator, others: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The rows of whole documents without these others, drawn at random, that have this share of the blocks together, or a little less."""
    by_document = rows_by_document(corpus)
    taken, most = list[NDArray[np.int64]](), share * len(corpus)
    for number in rng.permutation(len(by_document)).tolist():
        is_free = not np.isin(by_document[number], others).any()
        if is_free and sum(map(len, taken)) + len(by_document[number]) <= most:
            taken.append(by_document[number])
    return np.concatenate([np.empty(0, np.int64), *taken])


def query_text(written: str) -> str:
    """Return the query: the first line of what was written, up to its first question mark, without quotes around it."""
    found = re.match(r"[^?？؟]*[?？؟]?", written.partition("\n")[0])
    return " ".join(found[0].split()).strip(QUOTES) if found else ""


def sorted_out(
    written: Iterable[GeneratedQuery], corpus: Corpus, prompt: str
) -> tuple[list[GeneratedQuery], list[tuple[GeneratedQuery, str]]]:
    """Return the queries that may be of use, and the others with the reason why they are dropped.

    unfinished: cut at the longest. empty: no letter and no digit. prompt: no word that the prompt does not have. copied: it stands in the
    block. repeated: an earlier query has the same words.
    """
    kept, dropped, seen = [], [], set[str]()
    of_prompt = set(_words(PLACE.sub(" ", prompt)).split())
    for query in written:
        words, block = _words(query.text), corpus.block(query.row)
        reasons: Mapping[str, bool] = {
            "unfinished": not query.ended,
            "empty": not words,
            "prompt": of_prompt.issuperset(words.split()),
            "copied": words in _words(f"{block.title}\n{block.text}"),
            "repeated": words in seen,
        }
        if reason := next((name for name, holds in reasons.items() if holds), None):
            dropped.append((query, reason))
        else:
            seen.add(words)
            kept.append(query)
    return kept, dropped


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _found_again(queries: Sequence[GeneratedQuery], settings: GenerationSettings) -> set[GeneratedQuery]:
    """The queries whose block the retriever of --round-trip finds among its best ones."""
    searcher = DenseSearcher.start(round_trip_inputs(settings))
    found: set[GeneratedQuery] = set()
    with progress(len(queries), "looking for their blocks", "queries") as bar:
        for part in batched(queries, settings.batch_size):
            _, row_BK = searcher.nearest(searcher.tokens([query.text for query in part]), settings.round_trip_top)
            found |= {query for query, own in zip(part, row_BK.tolist(), strict=True) if query.row in own}
            bar.advance(len(part))
    return found


def round_trip_inputs(settings: GenerationSettings) -> SearchInputs:
    """Return what --round-trip searches with."""
    return SearchInputs.of(settings, retriever=settings.round_trip)


def _metadata(query: GeneratedQuery) -> dict[str, dict[str, float]]:
    return {} if query.log_prob is None else {"metadata": {"log_prob": query.log_prob}}


def _write(
    kept: Sequence[GeneratedQuery], dropped: Sequence[tuple[GeneratedQuery, str]], work: Work, out: Writer
) -> None:
    def name(query: GeneratedQuery) -> str:
        return trec_name(work.corpus.block(query.row).id)

    asked = work.corpus.blocks({query.row for query in kept})
    queries = [{"_id": f"{name(query)}:{query.number}", "text": query.text, **_metadata(query)} for query in kept]
    lines = [f"{name(query)}:{query.number}\t{name(query)}\t1\n" for query in kept]
    out.file("qrels/train.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *lines]), encoding="utf-8")
    blocks = [{"_id": trec_name(block.id), "title": block.title, "text": block.text} for block in asked.values()]
    reasons = [
        {"block": name(query), "text": query.text, **_metadata(query).get("metadata", {}), "reason": reason}
        for query, reason in sorted(dropped, key=lambda each: (each[0].row, each[0].number))
    ]
    files: Mapping[str, Sequence[Mapping[str, object]]] = {
        "queries.jsonl": queries,
        "corpus.jsonl": blocks,
        "dropped.jsonl": reasons,
    }
    for file, records in files.items():
        with out.file(file).open("w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    out.file("prompt.txt").write_text(work.prompt + "\n", encoding="utf-8")
    say(f"generate-queries: such as {kept[len(kept) // 2].text!r}")
