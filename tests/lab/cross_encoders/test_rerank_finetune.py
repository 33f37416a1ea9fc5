"""`rerank-finetune`: its loss beside a closed form, what it learns, and that everything reads what it makes."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path

import pytest
import torch

from realmctl.artifacts import open_artifact
from realmctl.corpus.document import Document
from realmctl.errors import InputError, MismatchError
from realmctl.extras.ir.labelled import LabelledQuestion
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.rerank import Rerank
from realmctl.extras.rerank.cross_encoder import CrossEncoder
from realmctl.lab.cross_encoders import objective
from realmctl.lab.cross_encoders.objective import LocalContrast, judged_questions
from realmctl.lab.cross_encoders.rerank_finetune import RerankFinetune
from realmctl.lab.cross_encoders.settings import RerankTrainingSettings
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.retrieval.search.reranking import Pair
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.chain import Chain, Stopped, metrics_of
from tests.fixtures.cross_encoders import make_cross_encoder

WORDS = ["velford", "harrow", "milton", "ashby"]


def of(question, positives, negatives, id=""):
    return LabelledQuestion(
        question, *(tuple(Document("", "", each) for each in some) for some in (positives, negatives)), id
    )


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """Who was born is positive, and who worked is not."""
    file = tmp_path_factory.mktemp("passages") / "train.jsonl"
    records = [
        {
            "query": f"where is {word}",
            "positive_passages": [{"docid": word, "title": "", "text": f"{word} was born in harrow"}],
            "negative_passages": [
                {"docid": other, "title": "", "text": f"{other} worked for the firm"}
                for other in WORDS
                if other != word
            ],
        }
        for word in WORDS
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


GIVEN = {"hard_negatives": 3, "batch_size": 4, "max_length": 32, "warmup": 0}


@pytest.fixture(scope="module")
def trained(cross_encoder, training, tmp_path_factory):
    stage = RerankFinetune(start=str(cross_encoder), passages=training, steps=110, lr=2e-2, **GIVEN)
    return stage.make(tmp_path_factory.mktemp("trained") / "cross-encoder")


def test_the_loss_is_a_softmax_over_the_passages_of_a_question(cross_encoder):
    questions = judged_questions(
        [of(f"where is {word}", [word], [other for other in WORDS if other != word]) for word in WORDS], Counter()
    )
    settings = RerankTrainingSettings(start="s", passages=Path("p"), **GIVEN)
    reader = CrossEncoder.open(cross_encoder, "cpu")
    whole = LocalContrast(reader, questions, settings)
    expected = 0.0
    for number in whole.order.batch(0).tolist():
        question = questions[number]
        pairs = [Pair(question.question, "", each.text) for each in (*question.positives, *question.negatives)]
        score = torch.logit(torch.from_numpy(reader.scores(pairs)).double())  # of the sigmoid
        expected += float(torch.logsumexp(score, 0) - score[0])
    with torch.no_grad():
        [part] = whole.draw(0)
        loss, sums = whole.loss(part)
        parts = LocalContrast(
            reader, questions, RerankTrainingSettings(start="s", passages=Path("p"), micro_batch=3, **GIVEN)
        ).draw(0)
        assert len(parts) == 2 and sum(float(whole.loss(each)[0]) for each in parts) == pytest.approx(
            float(loss), rel=1e-5
        )
    assert float(loss) == pytest.approx(expected / 4, rel=1e-3) and sums["accuracy"][1] == 4


def test_what_another_line_calls_positive_is_no_negative():
    dropped = Counter()
    found = judged_questions(
        [
            of("Who?", ["a"], ["B", "c"]),
            of("who? ", ["b"], ["A"]),
            of("When?", ["a"], ["b"], "7"),
            of("At what time?", ["B"], ["x"], "7"),
            of("e", [], ["x"]),
        ],
        dropped,
    )
    assert [(one.question, [each.text for each in one.negatives]) for one in found] == [
        ("Who?", ["c"]),
        ("At what time?", ["x"]),
    ]
    assert dropped == {"without a hard negative": 2, "without a positive passage": 1}


def test_it_learns_and_a_second_run_finds_it_made(trained, cross_encoder, training):
    assert metrics_of(trained)[0]["loss"] > 1 and trained.metrics["accuracy"] > 0.75
    again = RerankFinetune(start=str(cross_encoder), passages=training, steps=110, lr=2e-2, **GIVEN).make(
        trained.path.parent
    )
    assert again.path == trained.path


def test_a_run_that_was_stopped_after_its_last_step_ends_with_the_same_bytes(
    cross_encoder, training, tmp_path, monkeypatch
):
    """The tokenizer that has read no text is written as the one that has: transformers keeps how the last one was cut."""
    stage = RerankFinetune(start=str(cross_encoder), passages=training, steps=2, **GIVEN)
    whole = stage.make(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(objective, "save_cross_encoder", lambda *given: (_ for _ in ()).throw(Stopped))
        with pytest.raises(Stopped):
            stage.make(tmp_path / "stopped")
    assert stage.make(tmp_path / "stopped").content == whole.content
    kept = json.loads(whole.file("tokenizer.json").read_text())
    assert kept["truncation"] is kept["padding"] is None


def test_every_reader_takes_it(trained, training, chain: Chain, tmp_path):
    series, model = trained.path.parent, CrossEncoder.open(trained.path, "cpu")
    pairs = [("where is harrow", f"harrow {what}") for what in ("worked for the firm", "was born in harrow")]
    ours = model.scores([Pair(question, "", text) for question, text in pairs])
    assert ours.argmax() == 1 and ours.min() < 0, "logits, and no probabilities"
    library = pytest.importorskip("sentence_transformers")
    theirs = library.CrossEncoder(str(trained.path), device="cpu")
    assert ours == pytest.approx(theirs.predict(pairs), abs=1e-5) and theirs.max_seq_length == 32
    ranking = Rank(queries=chain.questions, blocks=chain.blocks, method="bm25", top=9).make(tmp_path / "ranking")
    made = Rerank(ranking=ranking, blocks=chain.blocks, model=str(series), depth=5).make(tmp_path / "reranked")
    assert json.loads(made.file("ranking.json").read_text())["reranker"] == "cross-encoder/v1"
    mined = MineNegatives(ranking=ranking, blocks=chain.blocks, questions=chain.questions, cross_encoder=str(series))
    assert mined.make(tmp_path / "mined").metrics["questions"] > 5
    further = RerankFinetune(start=str(series), passages=training, steps=1, **GIVEN).make(tmp_path / "further")
    assert open_artifact(further.path).kind == "cross-encoder"


def test_it_is_exported_as_a_folder_of_its_own(realmctl, trained):
    library = pytest.importorskip("sentence_transformers")
    code, _, err = realmctl("export", trained.path, "folder")
    assert code == 0, err
    names = {path.name for path in Path("folder").iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    pair, theirs = ("where is harrow", "it was born"), library.CrossEncoder("folder", device="cpu")
    assert CrossEncoder.open(Path("folder"), "cpu").scores([Pair(pair[0], "", pair[1])])[0] == pytest.approx(
        theirs.predict([pair])[0], abs=1e-5
    )


def test_an_encoder_of_the_chain_is_a_start_and_no_reranker(chain: Chain, training, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    made = RerankFinetune(start=str(chain.encoder.path), passages=training, steps=1, **GIVEN).make(tmp_path / "made")
    assert "MISSING" not in caplog.text  # the head is drawn, so nobody need be told
    assert CrossEncoder.open(made.path, "cpu").scores([Pair("a", "b", "c")]).shape == (1,)
    with pytest.raises(InputError, match="no trained sequence-classification model"):
        CrossEncoder.open(chain.encoder.path, "cpu")
    with pytest.raises(MismatchError, match="is of the kind retriever, and one of these is needed: encoder, cross-"):
        RerankFinetune(start=str(chain.retriever.path), passages=training, steps=1, **GIVEN).make(tmp_path / "made")


def test_a_start_with_other_labels_is_refused_by_its_shape(chain: Chain, training, tmp_path):
    two = make_cross_encoder(tmp_path / "two", Tokenizer.load(chain.blocks.path), labels=2)
    with pytest.raises(
        InputError, match=r"classifier\.bias has the shape \[2\] in place of \[1\], and a cross-encoder of"
    ):
        RerankFinetune(start=str(two), passages=training, steps=1, **GIVEN).make(tmp_path / "made")


def test_a_length_that_the_start_does_not_reach_is_told(cross_encoder, training, tmp_path, capsys):
    longer = {**GIVEN, "max_length": 8000}
    RerankFinetune(start=str(cross_encoder), passages=training, steps=1, **longer).make(tmp_path / "made")
    assert "wordpieces at most, so --max-length 8000 has no more" in capsys.readouterr().err


def test_what_has_no_negatives_is_refused(cross_encoder, tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_text(json.dumps({"anchor": "a", "positive": "b"}) + "\n")
    with pytest.raises(InputError, match=r"of --qrels\. `realmctl mine-negatives`"):
        RerankFinetune(start=str(cross_encoder), passages=file, **GIVEN).make(tmp_path / "made")
