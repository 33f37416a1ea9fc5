"""Cross-encoders beside sentence-transformers, which saved their folders."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.extras.rerank.cross_encoder import CrossEncoder
from realmctl.retrieval.search.reranking import Pair, Reranking
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.chain import Chain
from tests.fixtures.cross_encoders import make_cross_encoder

QUESTION = "Where was Ada Lorn born?"
TEXTS = [
    "Ada Lorn was born in Velford.",
    "The family was poor. " * 12,
    "",
    "That firm is in Harrow. It began in 1904.",
    "Milton",
]
KINDS = {
    "bert": {},
    "raw": {"activation_fn": "Identity"},
    "tanh": {"activation_fn": "Tanh", "max_length": 24},
    "prompted": {"prompts": {"query": "Find what answers: "}, "default_prompt_name": "query"},
    "two": {"labels": 2},
    "five": {"labels": 5},
    "xlm-roberta": {"family": "xlm-roberta"},
    "electra": {"family": "electra"},
    "distilbert": {"family": "distilbert"},
    "modernbert": {"family": "modernbert", "labels": 1},
}


@pytest.fixture(scope="session")
def saved(chain: Chain, tmp_path_factory):
    """Returns the folder of a kind as sentence-transformers saves it, and its own scores of QUESTION and TEXTS."""
    library = pytest.importorskip("sentence_transformers")
    import torch

    words, made = Tokenizer.load(chain.blocks.path), {}

    def make(kind: str):
        if kind not in made:
            fields = dict(KINDS[kind])
            plain = make_cross_encoder(
                tmp_path_factory.mktemp(kind) / "plain", words, fields.pop("family", "bert"), fields.pop("labels", 1)
            )
            if "activation_fn" in fields:
                fields["activation_fn"] = getattr(torch.nn, fields["activation_fn"])()
            theirs = library.CrossEncoder(str(plain), device="cpu", **fields)
            theirs.save(str(plain.parent / "saved"), create_model_card=False)
            again = library.CrossEncoder(str(plain.parent / "saved"), device="cpu")
            made[kind] = plain.parent / "saved", again.predict([(QUESTION, text.strip()) for text in TEXTS])
        return made[kind]

    return make


def pairs(texts=TEXTS):
    return [Pair(QUESTION, "", text) for text in texts]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_sentence_transformers(saved, kind):
    folder, theirs = saved(kind)
    if theirs.ndim == 2:  # the logits of labels, which are grades
        theirs = np.exp(theirs - theirs.max(1, keepdims=True))
        theirs = (theirs / theirs.sum(1, keepdims=True)) @ np.arange(theirs.shape[1])
    found = CrossEncoder.open(folder, "cpu").scores(pairs())
    assert np.ptp(theirs) > 0.005, "the texts have different scores, so that a mistake shows"
    assert found == pytest.approx(theirs, abs=1e-5) and found.dtype == np.float32


def test_a_score_does_not_depend_on_its_batch(saved):
    model = CrossEncoder.open(saved("bert")[0], "cpu")
    whole = model.scores(pairs(TEXTS * 40))
    assert whole == pytest.approx(np.tile([model.scores(pairs([text]))[0] for text in TEXTS], 40), abs=1e-6)
    assert model.scores([]).shape == (0,)


@pytest.mark.parametrize(("kind", "budget"), [("bert", 2**20), ("electra", 2**18)])
def test_batches_hold_rows_of_like_length_within_the_budget(saved, kind, budget):
    model = CrossEncoder.open(saved(kind)[0], "cpu")
    lengths = [*np.random.default_rng(0).integers(1, 64, 20_000).tolist()]
    batches = [*model._batches(lengths)]
    assert sorted(row for rows in batches for row in rows) == [*range(len(lengths))]
    for rows in batches:
        assert len(rows) * max(lengths[row] for row in rows) * 16 <= budget
    padding = sum(max(lengths[row] for row in rows) - lengths[each] for rows in batches for each in rows)
    assert padding < (0.05 if kind == "electra" else 0.2) * sum(lengths)  # BERT computes none of it
    assert max(len(rows) * max(lengths[row] for row in rows) * 16 for rows in batches) > budget / 2


def edited(folder, tmp_path, file, **fields):
    other = tmp_path / "edited"
    shutil.copytree(folder, other)
    path = other / file
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **fields}))
    return other


@pytest.mark.parametrize(
    ("file", "fields", "message"),
    [
        ("config.json", {"auto_map": {"AutoModel": "evil.Model"}}, "never does"),
        ("config_sentence_transformers.json", {"activation_fn": "os.system"}, "os.system"),
        ("config_sentence_transformers.json", {"activation_fn": "torch.nn.modules.linear.Bilinear"}, "Bilinear"),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "SparseEncoder"),
        ("config_sentence_transformers.json", {"default_prompt_name": "none"}, "default_prompt_name"),
        ("sentence_bert_config.json", {"processing_kwargs": {"text": {"max_length": 3}}}, "processing_kwargs"),
        ("config.json", {"architectures": ["Qwen3ForCausalLM"]}, "causal"),
        ("config.json", {"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ("config.json", {"hidden_size": 32}, "has the shape"),
    ],
)
def test_what_a_folder_asks_for_is_refused(saved, tmp_path, file, fields, message):
    with pytest.raises(InputError, match=message):
        CrossEncoder.open(edited(saved("bert")[0], tmp_path, file, **fields), "cpu")


def test_unsafe_and_missing_weights_are_refused(saved, tmp_path):
    import torch

    folder = edited(saved("bert")[0], tmp_path, "config.json")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="safetensors"):
        CrossEncoder.open(folder, "cpu")
    torch.save({"weights": torch.zeros(1)}, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="safetensors"):
        CrossEncoder.open(folder, "cpu")


def test_a_folder_without_its_vocabulary_is_refused(saved, tmp_path):
    """transformers 5 opens it with a tokenizer of the special tokens alone, to which every word is unknown."""
    folder = edited(saved("bert")[0], tmp_path, "config.json")
    words = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").unlink(missing_ok=True)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    with pytest.raises(InputError, match=r"neither a tokenizer\.json nor vocab\.txt, so every word would be unknown"):
        CrossEncoder.open(folder, "cpu")
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    assert len(CrossEncoder.open(folder, "cpu").scores(pairs())) == len(TEXTS)


def test_weights_of_other_shapes_than_its_configuration_are_refused(saved, tmp_path):
    folder = edited(
        saved("bert")[0], tmp_path, "config.json", id2label={str(n): f"L{n}" for n in range(4)}, label2id=None
    )
    with pytest.raises(
        InputError, match=r"its tensor 'classifier\.(weight|bias)' has the shape \[1.*, and config\.json describes \[4"
    ):
        CrossEncoder.open(folder, "cpu")
    (folder / "config.json").write_text("{}")
    with pytest.raises(InputError, match="it has no model_type"):
        CrossEncoder.open(folder, "cpu")


def test_modules_outside_of_the_folder_or_unknown_are_refused(saved, tmp_path):
    folder = edited(saved("bert")[0], tmp_path, "config.json")
    for modules in (
        [{"type": "a.Transformer", "path": "../x"}],
        [{"type": "a.Transformer", "path": ""}, {"type": "b.Dense", "path": "1"}],
        [3],
    ):
        (folder / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(InputError, match="modules"):
            CrossEncoder.open(folder, "cpu")


def test_labels_with_names_that_are_no_grades_are_refused(saved, tmp_path):
    folder = edited(
        saved("five")[0], tmp_path, "config.json", id2label={str(n): name for n, name in enumerate("abcde")}
    )
    with pytest.raises(InputError, match="no grades"):
        CrossEncoder.open(folder, "cpu")


def test_what_is_named_is_opened_by_its_kind(saved, chain: Chain):
    named = Reranking.of(saved("bert")[0], None)
    assert named is not None and isinstance(named.model, CrossEncoder) and (named.depth, named.name) == (50, "saved")
    with pytest.raises(MismatchError, match="of the kind blocks, which does not rerank"):
        Reranking.of(chain.blocks.path, None)
    with pytest.raises(ConfigError, match="--rerank-depth needs --rerank"):
        Reranking.of(None, 5)
    with pytest.raises(InputError, match="there is no such"):
        Reranking.of("nowhere/at all", None)
