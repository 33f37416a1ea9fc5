"""The whole chain on a tiny encoder of each family, from documents to answers with evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import realmctl
from realmctl.artifacts import Artifact
from realmctl.convert.exports.hub_export import export
from realmctl.corpus.corpus import Corpus
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.tokenizer import Tokenizer
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.condenser_init import CondenserInit
from stages.embed import Embed
from stages.eval_em import EvalEm
from stages.finetune import Finetune
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from stages.pretrain import Pretrain
from stages.spider_init import SpiderInit
from stages.tag import Tag
from tests.fixtures import families

PEOPLE = ["Ada Lorn", "Ben Mott", "Cora Nash", "Dan Ould", "Eva Kerr", "Finn Pell"]
TOWNS = ["Velford", "Köln", "Harrow"]
FEW: dict[str, Any] = {"steps": 2, "batch_size": 3}

families_of_the_chain = pytest.mark.parametrize(
    "model_type",
    [
        pytest.param(name, marks=() if name in ("roberta", "xlm-roberta") else pytest.mark.slow)
        for name in families.TYPES
    ],
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
    export(retriever.path, tmp_path / "exported")


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
