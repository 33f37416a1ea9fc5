"""`realmctl.load`: each kind opened, its numbers against the files it was opened from, and what it refuses."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import realmctl
from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.retrieval.answering.pretrained_model import PretrainedModel
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.retrieval.loaded_index import LoadedIndex
from realmctl.retrieval.loaded_retriever import LoadedRetriever
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import documents


def test_blocks_are_a_sequence_of_texts(chain):
    blocks = realmctl.load(chain.folder / "blocks")
    stored = list(Corpus(chain.blocks))
    assert len(blocks) == len(stored) == 40
    assert [blocks[row] for row in range(40)] == stored
    assert blocks[-1] == blocks[39] and blocks[2:4] == [blocks[2], blocks[3]]
    assert "40 blocks" in repr(blocks)
    with pytest.raises(IndexError):
        blocks[40]


@pytest.mark.parametrize("kind", ["index", "embeddings"])
def test_an_index_finds_the_largest_inner_products(chain, kind):
    index = realmctl.load(chain.folder / kind, device="cpu")
    vectors = np.load(chain.index.file("vectors.npy"))
    assert (len(index), index.dimension) == vectors.shape
    queries = np.random.default_rng(0).normal(size=(3, index.dimension)).astype(np.float32)
    scores, rows = index.search(queries, k=4)
    expected = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :4]
    assert rows.tolist() == expected.tolist() and scores.dtype == np.float32 and rows.dtype == np.int64
    assert np.allclose(scores, np.take_along_axis(queries @ vectors.T, expected, 1), atol=1e-5)
    assert np.array_equal(index.vectors(rows), vectors[rows])


def test_a_retriever_encodes_blocks_as_embed_did(chain):
    retriever, blocks = realmctl.load(chain.retriever, precision="fp32", device="cpu"), realmctl.load(chain.blocks)
    vectors = retriever.encode_blocks([block.title for block in blocks], [block.text for block in blocks])
    assert vectors.shape == (40, retriever.dimension) and vectors.dtype == np.float32
    made = realmctl.stages.Embed(blocks=chain.blocks, retriever=chain.retriever, precision="fp32", device="cpu")
    stored = np.load(made.make(chain.folder / "fp32-embeddings").file("embeddings.npy"))
    assert np.allclose(vectors, stored, atol=1e-5)
    assert retriever.encode_blocks([], []).shape == retriever.encode_queries([]).shape == (0, retriever.dimension)
    with pytest.raises(ConfigError, match=r"1 titles.*2 texts"):
        retriever.encode_blocks(["a"], ["b", "c"])


def test_queries_are_encoded_alike_in_any_batch(chain):
    retriever = realmctl.load(chain.retriever, precision="fp32")
    texts = [f"Where was {name} born?" for name in documents()]
    alone = np.concatenate([retriever.encode_queries([text]) for text in texts])
    assert len(texts) > 16 and np.allclose(retriever.encode_queries(texts), alone, atol=1e-5)
    assert np.linalg.norm(alone[0] - alone[1]) > 1e-3


def test_a_retriever_with_an_index_searches_text(chain):
    retriever = realmctl.load(chain.retriever, precision="fp32")
    search = retriever.with_index(chain.index)
    vectors = np.load(chain.index.file("vectors.npy"))
    scores = retriever.encode_queries(["Where was Ada Lorn born?"])[0] @ vectors.T
    assert [hit.row for hit in search.search("Where was Ada Lorn born?", k=3)] == np.argsort(-scores)[:3].tolist()
    same = retriever.with_index(realmctl.load(chain.index), blocks=realmctl.load(chain.blocks))
    assert same.search("Where?", k=2) == search.search("Where?", k=2)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("blocks", Corpus),
        ("embeddings", LoadedIndex),
        ("index", LoadedIndex),
        ("retriever", LoadedRetriever),
        ("model", PretrainedModel),
        ("qa_model", QaModel),
    ],
)
def test_a_path_a_version_and_an_artifact_open_alike(chain, model, qa_model, name, kind):
    made = {"model": model, "qa_model": qa_model}.get(name) or open_artifact(chain.folder / name)
    newest = open_artifact(made.path.parent)  # other tests may have added a version to the series that all share
    for path, meant in ((made, made), (made.path, made), (str(made.path), made), (made.path.parent, newest)):
        opened = realmctl.load(path)
        assert type(opened) is kind and opened.artifact.content == meant.content and str(meant.path) in repr(opened)


def test_kinds_that_cannot_be_loaded_are_refused(chain):
    with pytest.raises(ConfigError, match="spans"):
        realmctl.load(chain.spans)
    with pytest.raises(ConfigError, match="index"):
        realmctl.load(chain.index, blocks=chain.blocks)
    with pytest.raises(InputError, match="nothing"):
        realmctl.load(chain.folder / "nothing")
    with pytest.raises(MismatchError, match="qa-model"):
        realmctl.load_qa_model(chain.index)
    with pytest.raises(ConfigError, match="abacus"):
        realmctl.load(chain.retriever, device="abacus")


def test_what_is_not_a_text_or_a_batch_is_refused(chain, qa_model):
    retriever, index = realmctl.load(chain.retriever), realmctl.load(chain.index)
    for texts in ("abc", None, [["a"]], [3]):
        with pytest.raises(ConfigError):
            retriever.encode_queries(texts)
        with pytest.raises(ConfigError):
            retriever.encode_blocks(texts, texts)
    qa = realmctl.load(qa_model)
    with pytest.raises(ConfigError, match="half a surrogate pair at character 4"):
        retriever.encode_queries(["Who \ud800?"])
    for question in (["a"], None, 3, "", "Who \udcff?"):
        with pytest.raises(ConfigError):
            qa.search(question)
        with pytest.raises(ConfigError):
            qa.ask(question)
    with pytest.raises(ConfigError, match="k is"):
        qa.search("Where?", k="5")
    one = np.zeros(index.dimension, np.float32)
    with pytest.raises(ConfigError, match="None"):
        index.search(one)
    assert index.search(one[None], k=2)[1].shape == index.search([one.tolist()], k=2)[1].shape == (1, 2)
    with pytest.raises(MismatchError, match="retriever"):
        index.search(np.zeros((1, index.dimension + 1), np.float32))


def test_texts_that_can_be_read_once_are_refused_and_no_text_is_lost(chain, qa_model):
    """Checking a generator would use it up, and leave no text to encode."""
    retriever, qa = realmctl.load_retriever(chain.retriever), realmctl.load_qa_model(qa_model)
    for call in (
        retriever.encode_queries,
        qa.search_batch,
        qa.answer,
        lambda texts: retriever.encode_blocks(["T"], texts),
    ):
        for texts in ((text for text in ["Where?"]), {"Where?"}):
            with pytest.raises(ConfigError, match="list"):
                call(texts)
        assert len(call(np.array(["Where?"])))


def test_a_number_is_a_whole_one_of_python_or_numpy(chain, model, qa_model):
    pretrained, qa = realmctl.load_model(model), realmctl.load_qa_model(qa_model)
    assert len(qa.search("Where?", k=np.int64(3))) == len(pretrained.search("Where?", np.int32(3))) == 3
    assert len(qa.answer(["Where?"], np.int64(1), k=np.int64(4))[0].hits) == 4
    assert len(pretrained.fill_mask("In [MASK].", np.int64(3)).candidates) == 3
    for wrong in (0, -1, 2.5, True, np.float32(2)):
        calls = {
            "k": [lambda k: qa.search("Where?", k), lambda k: qa.answer(["Where?"], k=k)],
            "top": [lambda top: qa.ask("Where?", top)],
            "batch_size": [lambda size: qa.answer(["Where?"], batch_size=size)],
            "candidates": [lambda count: pretrained.fill_mask("In [MASK].", count)],
        }
        for name, call in ((name, call) for name, several in calls.items() for call in several):
            with pytest.raises(ConfigError, match=f"{name} is"):
                call(wrong)


def test_an_unknown_precision_is_refused_before_anything_is_opened(chain, model):
    for opener in (realmctl.load, realmctl.load_retriever, realmctl.load_model, realmctl.load_qa_model):
        with pytest.raises(ConfigError, match="fp16"):
            opener(chain.folder / "nothing", precision="fp16")


def test_a_file_is_told_from_what_does_not_exist(chain):
    with pytest.raises(InputError, match="is a file"):
        realmctl.load(chain.questions)


def test_another_index_may_be_named(chain, model, tmp_path):
    """The same vectors in an index outside of the model give the same blocks; one of another retriever is refused."""
    embeddings = realmctl.stages.Embed(blocks=chain.blocks, retriever=model, precision="fp32").make(tmp_path / "e")
    index = realmctl.stages.BuildIndex(embeddings=embeddings, type="exact").make(tmp_path / "i")
    opened = realmctl.load(model, blocks=chain.blocks, index=tmp_path / "i")
    assert opened.index.artifact.content == index.content
    assert [hit.row for hit in opened.search("Ada", k=3)] == [
        hit.row for hit in realmctl.load(model, blocks=chain.blocks).search("Ada", k=3)
    ]
    with pytest.raises(MismatchError):
        realmctl.load(model, blocks=chain.blocks, index=chain.index)
    with pytest.raises(ConfigError, match="index"):
        realmctl.load(chain.blocks, index=index)


def test_the_right_version_of_the_blocks_is_found_beside_the_model(chain, model, tmp_path):
    shutil.copytree(chain.folder / "blocks", tmp_path / "w/blocks")
    shutil.copytree(model.path.parent, tmp_path / "w/model")
    make_blocks(tmp_path / "w/blocks", {"Other": [["Other blocks are newer."]]})
    opened = realmctl.load(tmp_path / "w/model")
    assert opened.blocks.artifact.path == (tmp_path / "w/blocks/v1").resolve()
    part = realmctl.load_retriever(tmp_path / "w/model").with_index(tmp_path / "w/model/v1/index")
    assert part.blocks.artifact.content == chain.blocks.content


def test_missing_and_foreign_blocks_are_told(chain, model, tmp_path):
    shutil.copytree(model.path.parent, tmp_path / "w/model")
    with pytest.raises(InputError, match="w/blocks"):
        realmctl.load(tmp_path / "w/model")
    assert len(realmctl.load(tmp_path / "w/model", blocks=chain.blocks.path).blocks) == 40
    other = make_blocks(tmp_path / "other", {"Other": [["Other blocks."]]})
    with pytest.raises(MismatchError):
        realmctl.load(tmp_path / "w/model", blocks=other)
