"""The whole chain on a tiny encoder of each family, from documents to answers with evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import realmctl
from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.extras.hub.exports.hub_export import export
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.extras.ir.rank import Rank
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.service import Service
from realmctl.extras.utility.eval_utility import EvalUtility
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.lab.bottleneck.condenser_init import CondenserInit
from realmctl.lab.bottleneck.retromae_init import RetromaeInit
from realmctl.lab.dpr.dpr_finetune import DprFinetune
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.lab.knn_lm.build_datastore import BuildDatastore
from realmctl.lab.knn_lm.eval_knn_lm import EvalKnnLm
from realmctl.lab.spider.spider_init import SpiderInit
from realmctl.retrieval.answering.asking import Asked
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.tokenizer import Tokenizer
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.eval_cloze import EvalCloze
from stages.eval_em import EvalEm
from stages.finetune import Finetune
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from stages.pretrain import Pretrain
from stages.revise import Revise
from stages.tag import Tag
from tests.conftest import Command
from tests.fixtures import families

PEOPLE = ["Ada Lorn", "Ben Mott", "Cora Nash", "Dan Ould", "Eva Kerr", "Finn Pell"]
TOWNS = ["Velford", "Köln", "Harrow"]
FEW: dict[str, Any] = {"steps": 2, "batch_size": 3}

families_of_the_chain = pytest.mark.parametrize(
    "model_type",
    [pytest.param(name, marks=() if name == "roberta" else pytest.mark.slow) for name in families.TYPES],
)


def documents(folder: Path) -> Path:
    """A document for each person; the literal special tokens in it are text."""
    lines = [
        {
            "id": str(number),
            "title": name,
            "text": f"{name} was born in {TOWNS[number % 3]} in {1900 + number}. It was cold </s> [MASK] there. "
            f"Later {name} worked in {TOWNS[(number + 1) % 3]}, at a mill (the Harrow Mill). {name} wrote about it. "
            "The mill was very old and stood by a river. The river was wide and cold in the winter of the year.",
        }
        for number, name in enumerate(PEOPLE)
    ]
    path = folder / "documents.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    questions = [
        {"question": f"Where was {name} born?", "answer": [TOWNS[number % 3]]} for number, name in enumerate(PEOPLE)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in questions))
    return path


@families_of_the_chain
def test_the_chain_of_a_family(model_type: str, tmp_path: Path) -> None:
    encoder = families.write(model_type, tmp_path / "bert", max_position_embeddings=260)
    positions = {"max_wordpieces": 64}
    made = tmp_path / "made"
    blocks = Chunk(corpus=(documents(tmp_path),), tokenizer=str(encoder), workers=1, **positions).make(made / "blocks")
    corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
    special = {*words.specials} - {words.unk}
    assert not special & {int(n) for row in range(len(corpus)) for n in corpus.tokens(row)}
    spans = Tag(blocks=blocks, tagger="rules", query_length=80, max_masks=20, workers=1).make(made / "spans")
    queries = TaggedQueries(spans)
    texts = [text["text"] for text in queries.records]
    for row, text in enumerate(texts):
        assert queries.tokens(row).tolist() == words.ids(text).tolist()
    mlm = MlmInit(blocks=blocks, spans=spans, bert=str(encoder), practice="curriculum", window=60, **FEW).make(
        made / "encoder"
    )
    masked = MlmInit(blocks=blocks, bert=str(encoder), length=60, **FEW).make(made / "masked")
    condensed = CondenserInit(blocks=blocks, encoder=masked, length=60, **FEW).make(made / "condensed")
    retriever = IctInit(blocks=blocks, encoder=mlm, pooling="cls", query_length=60, projection=8, **FEW).make(
        made / "retriever"
    )
    SpiderInit(blocks=blocks, encoder=condensed, query_length=60, projection=8, **FEW).make(made / "spider")
    index = indexed(blocks, retriever, made)
    model = Pretrain(
        blocks=blocks,
        spans=spans,
        retriever=retriever,
        index=index,
        encoder=mlm,
        candidates=3,
        refresh="inline",
        refresh_every=2,
        **FEW,
    ).make(made / "model")
    tuned = Finetune(
        blocks=blocks,
        questions=tmp_path / "questions.jsonl",
        model=model,
        retriever_beam=4,
        reader_beam=2,
        reader_length=130,
        **FEW,
    ).make(made / "qa-model")
    scores = EvalEm(blocks=blocks, qa_model=tuned, questions=tmp_path / "questions.jsonl").make(made / "scores")
    assert scores.metrics["questions"] == len(PEOPLE)
    closed = Finetune(
        blocks=blocks, questions=tmp_path / "questions.jsonl", encoder=mlm, retrieval="none", reader_length=60, **FEW
    ).make(made / "closed")
    for each in (tuned, closed):
        answers = realmctl.load_qa_model(each, blocks=blocks).ask("Where was Ada Lorn born?").answers
        assert answers and all(isinstance(answer.text, str) for answer in answers)
        assert not any(name in answer.text for answer in answers for name in words.names)
    asked = realmctl.load_qa_model(tuned, blocks=blocks).ask("Where was Ada Lorn born?")
    for (
        answer
    ) in asked.answers:  # an answer is cut from the text at the borders of wordpieces, without blanks around it
        assert answer.text == answer.text.strip() and any(answer.text in block.text for block in corpus)
    filled = realmctl.load_model(model, blocks=blocks).fill_mask("Ada Lorn was born in [MASK] .")
    assert len(filled.with_retrieval) == 1
    check_served(made, model, tuned, asked)
    export(retriever.path, tmp_path / "exported")
    again = import_checkpoint(str(tmp_path / "exported"), tmp_path / "again", ImportExtras())["retriever"]
    query_2D = [
        realmctl.load(each, precision="fp32").encode_queries(["Where was Ada born?"]) for each in (retriever, again)
    ]
    np.testing.assert_allclose(*query_2D, atol=1e-5)


def check_served(made: Path, model: Artifact, qa_model: Artifact, asked: Asked) -> None:
    """A server answers as the library does, and embeds a block that is edited. Without the extra `serve` nothing is checked."""
    if find_spec("fastapi") is None:
        return
    from starlette.testclient import TestClient

    from realmctl.extras.serve.web.application import create_app

    paths = {"blocks": made / "blocks", "embeddings": made / "embeddings", "indexes": made / "index"}
    service = Service(*open_models(qa_model=qa_model.path, model=model.path, closed_book=None, **paths), True, 8)
    try:
        browser = TestClient(
            create_app(service, ["testserver"], "a-token-for-the-tests"), raise_server_exceptions=False
        )
        reply = browser.post("/api/v1/ask", json={"question": "Where was Ada Lorn born?"})
        assert reply.status_code == 200, reply.text
        assert [answer["text"] for answer in reply.json()["answers"]] == [answer.text for answer in asked.answers]
        edited = browser.put(
            f"/api/v1/blocks?id={reply.json()['answers'][0]['block']}",
            headers={"Authorization": "Bearer a-token-for-the-tests"},
            json={"text": "Ada Lorn was born in Köln. </s>", "version": reply.json()["version"]},
        )
        assert edited.status_code == 200, edited.text
    finally:
        service.stop()


@pytest.mark.slow
@pytest.mark.parametrize("model_type", families.TYPES)
def test_the_other_stages_of_a_family(model_type: str, tmp_path: Path) -> None:
    """RetroMAE, DPR, the kNN-LM, the measures without labels, ranking, and a revision of the blocks."""
    encoder, made = families.write(model_type, tmp_path / "bert", max_position_embeddings=260), tmp_path / "made"
    blocks = Chunk(corpus=(documents(tmp_path),), tokenizer=str(encoder), workers=1, max_wordpieces=64).make(
        made / "blocks"
    )
    spans = Tag(blocks=blocks, tagger="rules", query_length=80, max_masks=20, workers=1).make(made / "spans")
    masked = MlmInit(blocks=blocks, bert=str(encoder), length=60, **FEW).make(made / "masked")
    start = masked
    if model_type == "modernbert":
        with pytest.raises(ConfigError, match="position"):
            RetromaeInit(blocks=blocks, encoder=masked, length=60, **FEW).make(made / "retromae")
    else:
        start = RetromaeInit(blocks=blocks, encoder=masked, length=60, **FEW).make(made / "retromae")
    retriever = IctInit(blocks=blocks, encoder=start, pooling="mean", query_length=60, projection=8, **FEW).make(
        made / "retriever"
    )
    index = indexed(blocks, retriever, made)
    measured = EvalUtility(
        blocks=blocks, spans=spans, retriever=retriever, index=index, encoder=masked, candidates=3, queries=4
    ).make(made / "utility")
    assert np.isfinite(measured.metrics["log_prob"])
    cloze = EvalCloze(blocks=blocks, retriever=retriever, sentences=4).make(made / "cloze")
    assert cloze.metrics["sentences"] == 4
    store = BuildDatastore(encoder=masked, spans=spans).make(made / "datastore")
    neighbours = EvalKnnLm(encoder=masked, datastore=store, spans=spans, neighbours=4).make(made / "knn")
    assert np.isfinite(neighbours.metrics["log_prob"])
    (tmp_path / "edits.jsonl").write_text(
        json.dumps({"op": "add", "id": "new", "title": "Kim", "text": "Kim was born in Köln."}) + "\n"
    )
    revised = Revise(blocks=blocks, edits=tmp_path / "edits.jsonl", workers=1).make(made / "blocks")
    ranked = Rank(
        blocks=revised,
        retriever=retriever,
        index=indexed(revised, retriever, made),
        queries=tmp_path / "questions.jsonl",
        method="hybrid",
        unit="block",
        bm25_tokens="words",
        top=3,
        depth=6,
    ).make(made / "ranking")
    assert ranked.metrics["queries"] == len(PEOPLE)
    mined = MineNegatives(ranking=ranked, blocks=revised, questions=tmp_path / "questions.jsonl").make(
        made / "negatives"
    )
    tuned = DprFinetune(retriever=retriever, passages=mined.file("train.jsonl"), **FEW).make(made / "tuned")
    assert np.isfinite(tuned.metrics["loss"])


def indexed(blocks: Artifact, retriever: Artifact, folder: Path) -> Artifact:
    embeddings = Embed(blocks=blocks, retriever=retriever).make(folder / "embeddings")
    assert embeddings.metrics["truncated_blocks"] == 0
    return BuildIndex(embeddings=embeddings, type="exact").make(folder / "index")


@pytest.mark.parametrize("model_type", ["roberta", "xlm-roberta"])
def test_words_masked_as_bert_are_never_special(model_type: str, tmp_path: Path) -> None:
    families.tokenizer(model_type).save_pretrained(tmp_path)
    words = Tokenizer.load(tmp_path)
    drawn = words.ordinary[np.random.default_rng(0).integers(len(words.ordinary), size=5000)]
    assert not set(drawn.tolist()) & set(words.specials)
    assert len(set(drawn.tolist())) == len(words.ordinary) == len(set(words.vocabulary.values()) - set(words.specials))


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Encoders that cannot be used, blocks of a ModernBERT, and a retriever with another tokenizer."""
    folder = tmp_path_factory.mktemp("mistaken")
    documents(folder)
    for name, model_type, fields in (
        ("roberta", "roberta", {}),
        ("xlm-r", "xlm-roberta", {}),
        ("small", "xlm-roberta", {"vocab_size": 100}),
        ("modern", "modernbert", {"max_position_embeddings": 300}),
        ("deberta", "bert", {}),
        ("without-mask", "roberta", {}),
        ("without-frame", "roberta", {}),
    ):
        families.write(model_type, folder / name, **fields)

    def change(name: str, change: Callable[[dict[str, Any]], object]) -> None:
        fields = json.loads((folder / name).read_text())
        change(fields)
        (folder / name).write_text(json.dumps(fields))

    change("deberta/config.json", lambda fields: fields.update(model_type="deberta-v2"))
    change("without-frame/tokenizer.json", lambda fields: fields.update(post_processor=None))
    change("without-mask/tokenizer.json", lambda fields: fields["model"]["vocab"].pop("<mask>"))
    change("without-mask/tokenizer.json", lambda fields: fields["added_tokens"].pop())
    Chunk(corpus=(folder / "documents.jsonl",), tokenizer=str(folder / "modern"), workers=1).make(folder / "blocks")
    Chunk(corpus=(folder / "documents.jsonl",), tokenizer=str(folder / "without-mask"), workers=1).make(
        folder / "maskless"
    )
    import_checkpoint(str(folder / "xlm-r"), folder / "other", ImportExtras(encoder=EncoderSettings(pooling="cls")))
    return folder


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        ("import deberta --pooling cls", 3, "deberta-v2"),
        ("mlm-init --bert deberta", 3, "disentangled"),
        ("mlm-init --blocks maskless --bert scratch:tiny --out new", 3, "no mask"),
        ("chunk documents.jsonl --tokenizer without-frame --out new", 3, "</s>"),
        ("import small --pooling cls", 4, "118"),
        ("import modern --pooling pooler", 2, "modernbert"),
        ("ict-init --bert modern --pooling pooler --steps 0", 2, "no pooler"),
        ("mlm-init --bert roberta", 4, "roberta"),
        ("embed --retriever other/retriever", 4, "tokenizer"),
        ("chunk documents.jsonl --language tlh --out new", 2, "tlh"),
        ("index-docs documents.jsonl --language tlh", 2, "tlh"),
        ("adapt documents.jsonl --language tlh", 2, "tlh"),
        ("search Ada --method bm25 --bm25-stemmer tlh", 2, "tlh"),
        ("tag --blocks blocks --tagger klingon --out new", 2, "klingon"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_paragraph(
    realmctl: Command, mistaken: Path, monkeypatch: pytest.MonkeyPatch, given: str, code: int, named: str
) -> None:
    monkeypatch.chdir(mistaken)
    found, out, err = realmctl(*given.split(), "--workspace", ".")
    assert (found, out) == (code, "") and err.splitlines()[-1].startswith("error: ") and named in err.splitlines()[-1]
    assert not (mistaken / "new").exists() or not [*(mistaken / "new").glob("v*[0-9]")]
