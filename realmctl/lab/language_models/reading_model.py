"""Answers by a language model that reads the retrieved blocks: mixed by p(z|x), or all in one prompt.

Mixed: each block stands in a prompt of its own, and every token is chosen by the mixture of the distributions, weighted by p(z|x) among the blocks
that are read (REPLUG's ensemble, Shi et al. 2023, section 3.2). Together: one prompt has all of them, the best first.
The model is used as it is. Prompts and generation are those of the closed-book stages.
Legend: K blocks that are read, M tokens of an answer, T answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import regex
import torch
from torch import Tensor

from realmctl.corpus.corpus import TokenIds
from realmctl.lab.language_models.models.files import require_named_prompt
from realmctl.lab.language_models.models.known import load_reader
from realmctl.lab.language_models.models.prompts import (
    BlockPrompt,
    check_prompt,
    default_prompt,
    prompt_ids,
    sentinel_ids,
)
from realmctl.lab.language_models.models.reading import LmReader, ModelInput, ReadBlock, ReadingLimits
from realmctl.lab.language_models.options import Reading
from realmctl.models.precision import autocast, frozen_dtype, pick_device
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.answering.answerer import Answer
from realmctl.retrieval.answering.qa_model import Answering
from realmctl.retrieval.search.block_search import Hit
from realmctl.retrieval.search.text_search import TextSearch


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a language model reads and answers. Lengths are in its tokens.

    reading: whether each block has a prompt of its own, or one prompt has all. blocks: blocks that are read. prompt: text around `{question}`;
    None for the model's default. block_prompt: text around `{block}`, before it. length: longest input. answer_length: longest answer.
    """

    reading: Reading = "mixed"
    blocks: int = 5
    prompt: str | None = None
    block_prompt: str | None = None
    length: int = 512
    answer_length: int = 32


class ReadingModel(Answering):
    """A search and a language model that reads what it finds."""

    def __init__(
        self,
        search: TextSearch,
        reader: LmReader,
        options: ReadingOptions,
        device: str = "auto",
        precision: str = "auto",
    ) -> None:
        super().__init__(search.searcher, search.blocks)
        self.reranking = search.reranking
        self.device, self.precision = pick_device(device), precision
        self.reader, self.options, self.reads = reader.to(self.device).eval(), options, options.blocks
        self.prompt = options.prompt or default_prompt(reader.model)
        self.question_room = reader.room - options.answer_length - 1
        check_prompt(reader.model, self.prompt, self.question_room)

    @classmethod
    def open(
        cls, folder: Path, search: TextSearch, options: ReadingOptions, device: str = "auto", precision: str = "auto"
    ) -> Self:
        """Load the language model of a folder as the reader of a search.

        Raises:
            InputError: the folder holds no language model that can be used.
            ConfigError: a prompt or a length does not suit it, or it is a chat model and no prompt is named.
        """
        require_named_prompt(folder, {"--prompt": options.prompt, "--block-prompt": options.block_prompt})
        limits = ReadingLimits(options.length, options.answer_length)
        together = options.reading == "together"  # then `_passages` puts the prompt around each block
        prompt = BlockPrompt.named("{block}" if together else options.block_prompt)
        dtype = frozen_dtype(pick_device(device), precision)
        return cls(search, load_reader(folder, prompt, limits, dtype=dtype), options, device, precision)

    def tokens(self, questions: Sequence[str]) -> list[TokenIds]:
        return self.searcher.tokens(questions)

    def measures(self) -> dict[str, float]:
        """Return `cut_blocks`: of the blocks that were read, the share that did not fit whole."""
        cut, read = self.reader.cut_share()
        return {"cut_blocks": round(cut / max(1, read), 6)}

    @torch.no_grad()
    def read(
        self, questions: Sequence[str], tokens: Sequence[TokenIds], hits: Sequence[Sequence[Hit]], top: int
    ) -> list[list[Answer]]:
        with autocast(self.device, self.precision):
            return [
                self._answers(question, own[: self.reads], top) for question, own in zip(questions, hits, strict=True)
            ]

    def _answers(self, question: str, hits: Sequence[Hit], top: int) -> list[Answer]:
        """The answer of the mixture, and with `top` above 1 those of single blocks, best first; each with the block that speaks most for it."""
        model, longest = self.reader.model, self.options.answer_length
        passages, weight_K = self._passages(hits)
        source = tuple(prompt_ids(model, question, self.prompt, self.question_room))
        blocks = [self.reader.fitted(passage, source, longest) for passage in passages]
        prompts = [self.reader.input(block, source) for block in blocks]
        log_weight_K = torch.tensor(weight_K, device=self.device).log()
        written = model.generate(prompts, 1, longest, 1, log_weight_K)[:1]
        if top > 1 and len(prompts) > 1:
            written += model.generate(prompts, 1, longest, 1)
        answers = {model.text(target): target for target in (self._first_line(each[0]) for each in reversed(written))}
        found = [
            self._scored(text, target, blocks, source, log_weight_K, hits) for text, target in answers.items() if text
        ]
        return sorted(found, key=lambda answer: -answer.score)[:top]

    def _first_line(self, written: Sequence[int]) -> tuple[int, ...]:
        """The tokens of an answer up to a line break behind its first word, or to the sentinel that ends T5's."""
        model = self.reader.model
        _, last = sentinel_ids(model) or (None, None)
        for place, token in enumerate(written):
            if token == last or ("\n" in model.tokenizer.decode([token]) and model.text(written[:place])):
                return tuple(written[:place])
        return tuple(written)

    def _passages(self, hits: Sequence[Hit]) -> tuple[list[ReadBlock | None], list[float]]:
        """What stands in each prompt, and its weight. Without a hit the question stands alone."""
        if not hits:
            return [None], [1.0]
        if self.options.reading == "together":
            prompt = BlockPrompt.named(self.options.block_prompt)
            return [ReadBlock("", "".join(prompt.filled(hit.block.title, hit.block.text) for hit in hits))], [1.0]
        share_K = np.array([hit.probability for hit in hits])
        return [ReadBlock(hit.block.title, hit.block.text) for hit in hits], (share_K / share_K.sum()).tolist()

    def _scored(
        self,
        text: str,
        target: tuple[int, ...],
        blocks: Sequence[tuple[int, ...]],
        source: tuple[int, ...],
        log_weight_K: Tensor,
        hits: Sequence[Hit],
    ) -> Answer:
        """An answer with its mean log-probability by the mixture, and its evidence: the block that makes it likeliest, p(z|x) counted in."""
        log_prob_KM = self.reader.rows_log_prob([ModelInput(block, source, target) for block in blocks])[
            :, : len(target)
        ]
        require_finite_scores(log_prob_KM, "the language model")
        score = float((log_weight_K[:, None] + log_prob_KM).logsumexp(0).mean())
        if self.options.reading == "together":
            best = next((hit for hit in hits if _place(text, hit.block.text)), next(iter(hits), None))
        else:
            best = hits[int((log_weight_K + log_prob_KM.sum(1)).argmax())] if hits else None
        place = _place(text, best.block.text) if best else None
        return Answer(text, score, best, *(place or (None, None)))


def _place(answer: str, text: str) -> tuple[int, int] | None:
    """Where an answer first stands in a text, in characters, whatever its case: "strasse" stands in "Straße" too."""
    found = regex.search(regex.escape(answer), text, regex.IGNORECASE | regex.FULLCASE) if answer else None
    return found.span() if found else None
