"""`realmctl.load_search`: the newest index with its own retriever and blocks; hybrid is the fusion that `rank` writes."""

from __future__ import annotations

import re
import shlex
import shutil

import pytest

import realmctl
from realmctl import load_search
from realmctl.artifacts import open_artifact
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.retrieval.search import profile
from realmctl.retrieval.search.profile import default_method, stemmer_for
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain, documents, make_index
from tests.fixtures.retriever import make_retriever


def test_an_index_is_searched_with_what_it_was_made_from(chain: Chain, tmp_path, capsys):
    for kind in ("blocks", "retriever", "index"):
        shutil.copytree(chain.folder / kind, tmp_path / kind)
    texts = documents()
    revised = make_blocks(tmp_path / "blocks", {**texts, "Ada": next(iter(texts.values()))})
    assert realmctl.load_search(tmp_path).blocks.artifact.content == chain.blocks.content
    assert f"{revised.path} has no index" in capsys.readouterr().err
    assert realmctl.load_search(tmp_path, method="bm25").blocks.artifact.content == revised.content
    with pytest.raises(MismatchError):
        realmctl.load_search(tmp_path, method="dense", blocks=revised)
    other = make_retriever(tmp_path / "other", chain.blocks, seed=1)
    with pytest.raises(MismatchError):
        realmctl.load_search(tmp_path, retriever=other)
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(InputError, match="realmctl build-index"):
        realmctl.load_search(tmp_path, method="hybrid")


def test_blocks_that_are_as_before_are_searched_with_their_former_index(chain: Chain, tmp_path, capsys):
    """As after a revision that another one took back: the third version has the texts of the first."""
    for kind in ("blocks", "retriever", "index"):
        shutil.copytree(chain.folder / kind, tmp_path / kind)
    texts = documents()
    second = make_blocks(tmp_path / "blocks", {**texts, "Ada": next(iter(texts.values()))})
    make_index(tmp_path, second, open_artifact(tmp_path / "retriever"))
    shutil.copytree(tmp_path / "blocks" / "v1", tmp_path / "blocks" / "v3")
    assert realmctl.load_search(tmp_path).blocks.artifact.path == tmp_path / "blocks" / "v3"
    told = capsys.readouterr().err
    assert f"taking {tmp_path / 'index' / 'v1'}" in told and "realmctl embed" not in told


def test_the_command_that_makes_a_missing_index_makes_it(chain: Chain, realmctl, tmp_path, capsys):
    for kind in ("blocks", "retriever", "index"):
        shutil.copytree(chain.folder / kind, tmp_path / "my w" / kind)
    texts = documents()
    revised = make_blocks(tmp_path / "my w" / "blocks", {**texts, "Ada": next(iter(texts.values()))})
    load_search(tmp_path / "my w")
    for command in re.findall("`realmctl (.*?)`", capsys.readouterr().err):
        code, _, err = realmctl(*shlex.split(command))
        assert code == 0, err
    assert load_search(tmp_path / "my w").blocks.artifact.path == revised.path


def test_the_newest_blocks_decide_with_which_retriever_they_are_searched(chain: Chain, tmp_path):
    """`adapt` leaves a second retriever with its index; then `index-docs` makes other documents searchable by the first."""
    for kind in ("blocks", "retriever", "index"):
        shutil.copytree(chain.folder / kind, tmp_path / kind)
    first = open_artifact(tmp_path / "retriever" / "v1")
    second = make_retriever(tmp_path / "retriever", chain.blocks, seed=1)
    make_index(tmp_path, open_artifact(tmp_path / "blocks" / "v1"), second)
    texts = documents()
    revised = make_blocks(tmp_path / "blocks", {**texts, "Ada": next(iter(texts.values()))})
    make_index(tmp_path, revised, first)
    assert realmctl.load_search(tmp_path).blocks.artifact.content == revised.content
    assert realmctl.load_search(tmp_path, retriever=second).blocks.artifact.content == chain.blocks.content


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("dense", {"bm25_stemmer": "english"}),
        ("dense", {"bm25_tokens": "words"}),
        ("dense", {"bm25_weight": 0.5}),
        ("bm25", {"bm25_weight": 0.5}),
        ("bm25", {"fusion": "scores"}),
        ("hybrid", {"fusion": "best"}),
        ("bm25", {"bm25_tokens": "letters"}),
        ("hybrid", {"bm25_weight": -1}),
    ],
)
def test_an_option_that_the_method_does_not_obey_is_refused(chain: Chain, method, given):
    flag = "--" + next(iter(given)).replace("_", "-")
    with pytest.raises(ConfigError, match=flag):
        realmctl.load_search(chain.folder, method=method, **given)


def test_the_profile_is_hybrid_where_there_is_an_index_and_options_override_it(chain: Chain, tmp_path):
    whole = realmctl.load_search(chain.folder).profile.told()
    assert whole == {
        "method": "hybrid",
        "fusion": "scores",
        "bm25_weight": 1.0,
        "bm25_stemmer": "en",
        "bm25_tokens": "words",
        "depth": 100,
    }
    own = realmctl.load_search(chain.folder, fusion="ranks", bm25_weight=0.5, bm25_tokens="pieces").profile.told()
    changed = {"fusion": "ranks", "bm25_weight": 0.5, "bm25_tokens": "pieces"}
    assert own == {**{name: value for name, value in whole.items() if name != "bm25_stemmer"}, **changed}
    assert realmctl.load_search(chain.folder, method="dense").profile.told() == {"method": "dense"}
    shutil.copytree(chain.folder / "blocks", tmp_path / "blocks")
    assert realmctl.load_search(tmp_path).profile.method == "bm25"


def test_english_endings_are_left_alone_in_a_text_of_other_letters(tmp_path):
    """Blocks are English where nobody said their language."""
    korean = make_blocks(tmp_path / "ko", {"서울": [["서울은 대한민국의 수도이다.", "한강이 흐른다."]]})
    english = make_blocks(tmp_path / "en", {"Paris": [["Paris is the capital of France.", "A café stands there."]]})
    assert [stemmer_for(each) for each in (korean, english)] == [None, "en"]


def test_many_blocks_are_searched_by_the_encoder_and_stems_need_the_extra(chain: Chain, monkeypatch):
    monkeypatch.setattr(profile, "MOST_FOR_HYBRID", 39)
    assert default_method(39) == "hybrid" and default_method(40) == "dense", "BM25 is computed at each start"
    monkeypatch.setattr(profile.importlib.util, "find_spec", lambda name: None)
    assert stemmer_for(chain.blocks) is None
