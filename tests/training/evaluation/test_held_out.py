"""Questions of documents that a training leaves out: no step reads them, and weights are kept only where they gain too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from realmctl.artifacts import Artifact, Origin, open_artifact, writing
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.evaluation.cloze_recall import ClozePassages, gain
from realmctl.training.evaluation.held_out import left_out, questions_of
from realmctl.training.ict import InverseClozeObjective
from stages.ict_init import IctInit
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain, documents

SETTINGS = {"steps": 4, "batch_size": 4, "cloze_recall": 12, "cloze_every": 2, "precision": "fp32"}


def questions_for(folder: Path, blocks: Artifact, rows: list[int], rename: str = "") -> Artifact:
    """Two questions for each of these blocks."""
    with writing(folder, Origin("queries", "generate-queries", 1, {}, {})) as out:
        names = [Corpus(blocks).block(row).id + rename for row in rows]
        asked = [
            (f"{name}:{number}", f"Who is told of in {row}, {number}?")
            for number in (0, 1)
            for row, name in zip(rows, names, strict=True)
        ]
        out.file("queries.jsonl").write_text(
            "".join(json.dumps({"_id": id, "text": text}) + "\n" for id, text in asked)
        )
        lines = "".join(f"{id}\t{id.rpartition(':')[0]}\t1\n" for id, _ in asked)
        out.file("qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    return open_artifact(folder)


@pytest.fixture(scope="module")
def blocks(chain: Chain, tmp_path_factory) -> Artifact:
    """Documents of several blocks."""
    return make_blocks(tmp_path_factory.mktemp("several") / "blocks", documents())


def test_no_block_of_their_documents_takes_part_in_training(blocks, chain: Chain, tmp_path):
    corpus = Corpus(blocks)
    questions = questions_for(tmp_path / "questions", blocks, [1, 6, 7])
    apart = {corpus.block(row).document for row in (1, 6, 7)}
    rows = left_out(questions, corpus).tolist()
    assert rows == [row for row, block in enumerate(corpus) if block.document in apart] and len(rows) > 3
    settings = IctInit(blocks=blocks, retriever=chain.retriever, held_out=questions, **SETTINGS)
    collator = Collator.of(Tokenizer.load(blocks.path))
    objective = InverseClozeObjective(Retriever.load(chain.retriever.path), corpus, collator, settings)
    plain = InverseClozeObjective(
        Retriever.load(chain.retriever.path),
        corpus,
        collator,
        IctInit(blocks=blocks, retriever=chain.retriever, **SETTINGS),
    )
    assert {*objective.rows.tolist()} == {*plain.rows.tolist()} - {*rows}
    uids = {int(corpus.uid[row]) for row in rows}
    for step in range(40):
        assert not uids & {name for example in objective.examples(step) for name in example.names}


def test_a_question_looks_for_its_block_among_others(blocks, chain: Chain, tmp_path):
    corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
    asked = questions_of(questions_for(tmp_path / "questions", blocks, [1, 6, 9]), corpus)
    assert asked == {row: f"Who is told of in {row}, 0?" for row in (1, 6, 9)}
    few, every = (ClozePassages.asked(corpus, words, asked, count, 0) for count in (8, 0))
    assert len(few) == 8 and len(every) == len(corpus)
    for passages in (few, every):
        assert [words.text_of(each.tolist()) for each in passages.sentences] == [
            words.text_of(words.ids(text).tolist()) for text in asked.values()
        ]
        assert all(np.array_equal(passages.tokens(number), corpus.tokens(row)) for number, row in enumerate(asked))
    retriever = Retriever.load(chain.retriever.path)
    ranks = every.ranks(retriever, Collator.of(words), "fp32")
    scores = every.scores(retriever, Collator.of(words), "fp32")
    assert ranks.tolist() == [int((row >= row[number]).sum()) for number, row in enumerate(scores)]


@pytest.mark.parametrize(("by_questions", "kept"), [([1, 1], 4), ([30, 30], 0), ([9, 30], 2)])
def test_weights_are_kept_only_where_the_questions_gain_too(
    blocks, chain: Chain, tmp_path, monkeypatch, by_questions, kept
):
    """Sentences gain at each measurement. by_questions: ranks of the questions at steps 2 and 4; they begin at 20."""
    of_sentences, of_questions = iter([40, 20, 10]), iter([20, *by_questions])

    def ranks(passages: ClozePassages, *given: object) -> np.ndarray:
        count = len(passages.sentences)
        base = next(of_sentences if count == 12 else of_questions)
        return np.full(count, base) + np.arange(count) % 2

    monkeypatch.setattr(ClozePassages, "ranks", ranks)
    questions = questions_for(tmp_path / "questions", blocks, [1, 6, 7, 9])
    stage = IctInit(blocks=blocks, retriever=chain.retriever, held_out=questions, keep="gain", **SETTINGS)
    found = stage.make(tmp_path / "retriever").metrics
    last = np.full(4, by_questions[1]) + np.arange(4) % 2, np.full(4, 20) + np.arange(4) % 2
    assert found["kept_step"] == kept and found["last_question_gain"] == gain(*last).mean
    assert (
        questions.content
        in IctInit(blocks=blocks, retriever=chain.retriever, held_out=questions, **SETTINGS).origin().inputs.values()
    )


def test_what_does_not_fit_is_refused(blocks, chain: Chain, tmp_path):
    questions = questions_for(tmp_path / "questions", blocks, [1, 6], rename="x")
    with pytest.raises(InputError, match=r"has 0 of the 2 blocks"):
        questions_of(questions, Corpus(blocks))
    with pytest.raises(ConfigError, match="--held-out needs --cloze-recall"):
        IctInit(blocks=blocks, retriever=chain.retriever, held_out=questions).check()
    with writing(tmp_path / "torn", Origin("queries", "generate-queries", 1, {}, {})) as out:
        out.file("queries.jsonl").write_text("[]\n")
        out.file("qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    with pytest.raises(InputError, match="holds no questions of blocks"):
        questions_of(open_artifact(tmp_path / "torn"), Corpus(blocks))
