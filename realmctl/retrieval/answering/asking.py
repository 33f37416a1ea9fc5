"""One question (`realmctl ask`), and what its answer is without some blocks.

The last is what a takedown request needs: which blocks were left out, what the answer is now, and how probable the former answer still is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.retrieval.answering.answerer import Answer
from realmctl.retrieval.answering.extractive import ExtractiveAnswerer
from realmctl.retrieval.answering.qa_model import AnsweredQuestion, QaModel, answer_record, answers_text
from realmctl.retrieval.search.reranking import Reranking


@dataclass(frozen=True)
class AnswerAblation:
    """An answer before and after blocks were left out.

    `blocks`: the ids left out. `answers`: the best answers without them. `text`: the best answer with them, and its
    probability among all spans read, before and after. `blocks_with_answer`: ids of the blocks read afterwards that still
    hold it.
    """

    blocks: tuple[str, ...]
    answers: tuple[Answer, ...]
    text: str | None
    probability_before: float
    probability_after: float
    blocks_with_answer: tuple[str, ...]

    def __str__(self) -> str:
        count, named = len(self.blocks), ", ".join([*self.blocks[:5], *(["..."] if len(self.blocks) > 5 else [])])
        lines = [f"without {count} block{'s' if count > 1 else ''} ({named}):"]
        lines += [f"   {line}" for line in answers_text(self.answers).split("\n")]
        if self.text is not None:
            lines.append(
                f"   probability of {self.text!r}: {self.probability_before:.4f} before, {self.probability_after:.4f} "
                f"without; blocks read that still hold it: {', '.join(self.blocks_with_answer) or 'none'}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Asked(AnsweredQuestion):
    """An answered question, and what its answers are without some blocks."""

    without: AnswerAblation | None = None

    def record(self) -> dict[str, object]:
        """The JSON of `ask`."""
        found = super().record()
        if self.without is not None:
            found["without"] = {**vars(self.without), "answers": [*map(answer_record, self.without.answers)]}
        return found

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *([str(self.without)] if self.without else [])])


def ask(
    question: str,
    qa_model: Path,
    blocks: Path,
    top: int,
    *,
    index: Path | None = None,
    without: Sequence[str] = (),
    rerank: str | None = None,
    rerank_depth: int | None = None,
    rerank_fused: bool = False,
) -> Asked:
    """The `top` best answers to a question, each with its evidence.

    Args:
        question: the question.
        qa_model: the fine-tuned model.
        blocks: the blocks that it was fine-tuned with, or those of `index`.
        top: the number of answers.
        index: index to search instead of the qa-model's own, such as one of revised blocks.
        without: ids of blocks, ids of documents, or titles of documents; the result then has the answers without them too.
        rerank, rerank_depth, rerank_fused: what chooses the blocks that are read, among so many; see `Reranking.of`.

    Raises:
        ConfigError: the question is empty.
        InputError: a name in `without` is that of no block and no document.
    """
    if not question.strip():
        raise ConfigError('ask needs a question, such as realmctl ask "Who wrote it?".')
    qa = QaModel.open(qa_model, blocks=blocks, index=index)
    qa.reranking = Reranking.of(rerank, rerank_depth, fused=rerank_fused)
    found = qa.ask(question, top)
    ablation = None
    if without:
        ablation = answered_without(qa, question, named_rows(qa.blocks, without), top)
    return Asked(question, found.answers, found.hits, found.reranking, ablation)


def answered_without(qa: QaModel, question: str, rows: Sequence[int], top: int) -> AnswerAblation:
    """Answer a question again without the blocks in some rows, ascending.

    Raises ConfigError if the qa-model reads no blocks.
    """
    answerer = qa.answerer
    if not isinstance(answerer, ExtractiveAnswerer):
        raise ConfigError(
            "This qa-model reads no blocks, so none can be left out. `realmctl ask --probe` shows what weights say."
        )
    tokens, k = answerer.tokens([question]), answerer.reader_beam
    before, after = (qa.retrieved([question], tokens, k, left_out) for left_out in ((), rows))
    best = next(iter(answerer.answer(tokens, before, 1)[0]), None)
    text = best.text if best else None
    share_before, share_after = (
        answerer.probability(tokens[0], hits[0], text) if text else 0.0 for hits in (before, after)
    )
    return AnswerAblation(
        tuple(qa.blocks[row].id for row in rows),
        tuple(answerer.answer(tokens, after, top)[0]),
        text,
        share_before,
        share_after,
        tuple(hit.block.id for hit in after[0] if text and answerer.places(hit, text)),
    )


def named_rows(corpus: Corpus, names: Sequence[str]) -> list[int]:
    """Rows of the blocks with these ids, or of documents with these ids or titles, ascending.

    Raises InputError for a name that no block and no document has.
    """
    found: dict[str, list[int]] = {name: [] for name in names}
    for row, block in enumerate(corpus):
        for name in {block.id, block.document, block.title} & found.keys():
            found[name].append(row)
    if unknown := [name for name, rows in found.items() if not rows]:
        raise InputError(
            f"{corpus.artifact} has no block and no document named {', '.join(map(repr, unknown))}. Name the id of a "
            "block, as `ask --json` prints it, or the id or title of a document."
        )
    return sorted({row for rows in found.values() for row in rows})
