"""Answering, against loops over every block and every span; and what does not belong together."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realmctl.errors import InputError, MismatchError
from realmctl.models.inputs import block_token_mask
from realmctl.retrieval.answering.offsets import char_offsets
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.retrieval.search.block_search import Hit
from realmctl.retrieval.search.dense import DenseSearcher
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import documents, make_index
from tests.fixtures.retriever import make_retriever

QUESTIONS = ["Where was Ada Lorn born?", "Which firm did Ben Mott work for?"]


@pytest.fixture(scope="module")
def answerer(qa_model, chain):
    return QaModel.open(qa_model, blocks=chain.blocks, device="cpu", precision="fp32").answerer


def test_search_finds_the_nearest(answerer, chain):
    tokens = answerer.tokens(QUESTIONS)
    vectors = np.array(answerer.searcher.index.vectors(np.arange(len(answerer.searcher.corpus))))
    with torch.no_grad():
        queries = answerer.searcher.retriever.embed_queries(answerer.searcher.collator.query(tokens, 512)).numpy()
    for query, hits in zip(queries, answerer.searcher.search(tokens, 7), strict=True):
        scores = vectors @ query
        order = np.argsort(-scores, kind="stable")[:7]
        assert [hit.row for hit in hits] == order.tolist()
        assert [hit.score for hit in hits] == pytest.approx(scores[order].tolist(), rel=1e-5)
        shares = np.exp(scores[order] - scores[order].max())
        assert [hit.probability for hit in hits] == pytest.approx((shares / shares.sum()).tolist(), rel=1e-4)


def test_the_answer_is_the_best_span_of_all_that_is_read(answerer):
    tokens = answerer.tokens(QUESTIONS)
    hits = answerer.searcher.search(tokens, 8)
    for question, found, answers in zip(tokens, hits, answerer.answer(tokens, hits, 1), strict=True):
        best = (-np.inf, None, None, None)
        for hit in found[: answerer.reader_beam]:
            packed, start = answerer.searcher.collator.reader(
                [question], [answerer.searcher.corpus.tokens(hit.row)], answerer.reader_length
            )
            with torch.no_grad():
                score, (first, last) = answerer.reader.span_scores(
                    packed, block_token_mask(packed, start), answerer.span_width
                )
            place = int(score[0].argmax())
            total = float(score[0, place]) + hit.score
            if total > best[0]:
                best = (total, hit.row, int(first[place] - start[0]), int(last[place] - start[0]))
        [answer] = answers
        assert answer.score == pytest.approx(best[0], rel=1e-5) and answer.hit.row == best[1]
        assert answer.text == answer.hit.block.text[answer.start : answer.end]
        wordpieces = answerer.searcher.corpus.tokens(best[1])[best[2] : best[3] + 1].tolist()
        assert answerer.searcher.wordpiece.ids(answer.text).tolist() == wordpieces


def test_an_answer_keeps_the_authors_spacing(answerer):
    """Every span of a block is cut as the text between its offsets; `Velford.` gets no blank before its full stop."""
    row = 0
    hit = Hit(row, answerer.searcher.corpus[row], 0.0, 1.0)
    text, pieces = hit.block.text, len(answerer.searcher.corpus.tokens(row))
    offsets = char_offsets(answerer.searcher.corpus, answerer.searcher.wordpiece, row)
    spans = [(first, last) for first in range(pieces) for last in range(first, min(first + 4, pieces))]
    cut = [answerer._cut((0.0, first, last), hit).text for first, last in spans]
    assert cut == [text[offsets[first, 0] : offsets[last, 1]] for first, last in spans]
    assert any("." in answer[1:] for answer in cut) and not any(" ." in answer for answer in cut)


def test_an_answer_is_cut_at_the_borders_of_words(answerer, monkeypatch):
    """A span may begin or end between the wordpieces of a word. Here every second wordpiece continues the one before it."""
    row = 0
    hit = Hit(row, answerer.searcher.corpus[row], 0.0, 1.0)
    pieces = answerer.searcher.corpus.tokens(row)
    continues = np.zeros(len(answerer.searcher.wordpiece.continues), dtype=bool)
    continues[pieces[3]] = continues[pieces[4]] = True
    monkeypatch.setattr(answerer.searcher.wordpiece, "continues", continues)
    offsets = char_offsets(answerer.searcher.corpus, answerer.searcher.wordpiece, row)
    whole = hit.block.text[offsets[2, 0] : offsets[4, 1]]
    for first, last in ((2, 2), (2, 3), (3, 3), (3, 4), (4, 4), (2, 4)):
        answer = answerer._cut((0.0, first, last), hit)
        assert answer.text == whole == hit.block.text[answer.start : answer.end]


def test_several_answers_have_different_texts_and_falling_scores(answerer):
    tokens = answerer.tokens(QUESTIONS)
    for answers in answerer.answer(tokens, answerer.searcher.search(tokens, 8), 5):
        assert len({answer.text for answer in answers}) == len(answers) == 5
        assert [answer.score for answer in answers] == sorted((answer.score for answer in answers), reverse=True)


def test_a_wider_beam_may_be_asked_for(qa_model, chain):
    assert QaModel.open(qa_model, blocks=chain.blocks).answerer.reader_beam == 3
    assert QaModel.open(qa_model, blocks=chain.blocks, reader_beam=7).answerer.reader_beam == 7


def test_special_tokens_in_a_question_are_text(answerer):
    specials = {
        *answerer.searcher.collator.frame.before,
        *answerer.searcher.collator.frame.after,
        answerer.searcher.collator.mask_id,
    }
    [tokens] = answerer.tokens(["Is [MASK] or [SEP] a [CLS]?"])
    assert not specials & set(tokens.tolist())


def test_questions_of_no_word_do_not_break_the_batch(answerer):
    tokens = answerer.tokens(["", QUESTIONS[0]])
    alone = answerer.answer(tokens[1:], answerer.searcher.search(tokens[1:], 3), 1)
    assert answerer.answer(tokens, answerer.searcher.search(tokens, 3), 1)[1][0].text == alone[0][0].text


def test_what_does_not_belong_together(qa_model, chain, tmp_path):
    other_blocks = make_blocks(
        tmp_path / "blocks", {**documents(), "More": [["More was born in [[Milton]].", "The end."]]}
    )
    other = make_retriever(tmp_path / "retriever", chain.blocks, seed=1)
    index = make_index(tmp_path, chain.blocks, other)
    with pytest.raises(MismatchError, match="vocabular"):
        QaModel.open(qa_model, blocks=other_blocks)
    same_words = make_blocks(tmp_path / "reordered", dict(reversed(documents().items())))
    with pytest.raises(MismatchError, match="blocks"):
        QaModel.open(qa_model, blocks=same_words)
    with pytest.raises(MismatchError, match="index"):
        DenseSearcher(chain.retriever, index, chain.blocks, "cpu", "fp32")
    with pytest.raises(MismatchError, match="index"):
        DenseSearcher(qa_model.part("retriever"), index, chain.blocks, "cpu", "fp32")


def test_a_reader_whose_scores_are_not_finite_is_refused(qa_model, chain):
    """Its weights are finite and too large to compute with: a bad model would look like one that knows nothing."""
    broken = QaModel.open(qa_model, blocks=chain.blocks, device="cpu", precision="fp32").answerer
    with torch.no_grad():
        broken.reader.head.output.weight.fill_(3e38)
    tokens = broken.tokens(QUESTIONS)
    with pytest.raises(InputError, match="not finite"):
        broken.answer(tokens, broken.searcher.search(tokens, 3), 1)
