"""Which versions are taken: the newest that fit each other, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, Origin, open_artifact, writing
from realmctl.artifacts.artifact import version_numbers
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.pipeline import Named, choose
from realmctl.pipeline.choosing import fitting


class Workspace:
    """Artifacts of a few bytes that say what they were made from."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def make(
        self, kind: str, words: str | None = None, index: dict[str, Artifact] | None = None, **made_from: Artifact
    ):
        """The next version of a series. `index`: what the index inside was made from."""
        lineage = {name: artifact.content for name, artifact in made_from.items()}
        number = max(version_numbers(self.folder / kind), default=0) + 1
        self.count += 1
        with writing(self.folder / kind / f"v{number}", Origin(kind, "test", 1, {}, {}, lineage)) as out:
            out.file("data").write_text(str(self.count))
            if words is not None:
                out.file("vocab.txt").write_text(words)
            if index is not None:
                own = {name: artifact.content for name, artifact in index.items()}
                with writing(out.path / "index", Origin("index", "test", 1, {}, {}, own)) as part:
                    part.file("data").write_text(f"index {self.count}")
        return open_artifact(self.folder / kind / f"v{number}")

    def index_of(self, blocks: Artifact, retriever: Artifact) -> Artifact:
        return self.make("index", blocks=blocks, retriever=retriever)

    def chosen(self, *kinds: str, **given: Artifact | Path) -> dict[str, str | None]:
        """{kind: name of the version} with the series of these kinds; an index beside a model may be the model's own."""
        models = tuple(kind for kind in kinds if kind in ("model", "qa-model"))
        named = {kind: Named(given.get(kind, self.folder / kind), (kind,)) for kind in kinds}
        if models:
            named["index"] = Named(self.folder / "index", ("index",), "index", models)
        return {name: made and made.path.name for name, made in choose(named).items()}


@pytest.fixture
def w(tmp_path):
    return Workspace(tmp_path)


def test_the_newest_that_fit_are_taken(w, capfd):
    first, retriever = w.make("blocks"), w.make("retriever")
    w.index_of(first, retriever)
    assert w.chosen("blocks", "retriever", "index") == {"blocks": "v1", "retriever": "v1", "index": "v1"}
    assert capfd.readouterr().err == ""
    second = w.make("blocks")
    assert w.chosen("blocks", "retriever", "index") == {"blocks": "v1", "retriever": "v1", "index": "v1"}
    said = capfd.readouterr().err
    assert "blocks/v1" in said and "blocks/v2" in said and "realmctl embed --blocks" in said
    w.index_of(second, retriever)
    w.index_of(first, retriever)
    assert w.chosen("blocks", "retriever", "index") == {"blocks": "v2", "retriever": "v1", "index": "v2"}
    w.make("retriever")  # nothing is embedded with it
    assert w.chosen("blocks", "retriever", "index") == {"blocks": "v2", "retriever": "v1", "index": "v2"}


def test_a_version_that_is_named_is_taken_and_the_others_follow(w):
    first, retriever = w.make("blocks"), w.make("retriever")
    w.index_of(first, retriever)
    second = w.make("blocks")
    w.index_of(second, retriever)
    assert w.chosen("blocks", "retriever", "index", blocks=first.path)["index"] == "v1"
    assert w.chosen("blocks", "retriever", "index", blocks=first)["index"] == "v1"
    assert w.chosen("blocks", "retriever", "index", index=w.folder / "index/v1")["blocks"] == "v1"
    fixed = w.chosen("blocks", "retriever", "index", blocks=first, retriever=retriever, index=w.folder / "index/v2")
    assert fixed["index"] == "v2"  # the stage says whether these fit


def test_a_model_searches_its_own_index_until_newer_blocks_have_one(w, capfd):
    first = w.make("blocks")
    retriever = w.make("retriever")  # stands for the one inside the model
    w.make("qa-model", index={"blocks": first, "retriever": retriever})
    own = {"qa-model": "v1", "blocks": "v1", "index": None}
    assert w.chosen("qa-model", "blocks") == own
    w.index_of(first, retriever)
    assert w.chosen("qa-model", "blocks") == own
    second = w.make("blocks")
    assert capfd.readouterr().err == ""
    w.index_of(second, w.make("retriever"))  # of another retriever
    assert w.chosen("qa-model", "blocks") == own
    said = capfd.readouterr().err
    assert f"--retriever {retriever.path}" in said and "build-index" in said
    w.index_of(second, retriever)
    assert w.chosen("qa-model", "blocks") == {"qa-model": "v1", "blocks": "v2", "index": "v3"}
    assert "index/v3" in capfd.readouterr().err
    assert w.chosen("qa-model", "blocks", blocks=first) == own


def test_an_index_beside_a_retriever_that_has_none_is_nothing_to_tell(w, capfd):
    """As `index-docs` makes them, and `serve` reads them."""
    blocks, retriever = w.make("blocks"), w.make("retriever")
    w.index_of(blocks, retriever)
    found = fitting(w.folder / "blocks", models={"retriever": Named(w.folder / "retriever", ("retriever",))})
    assert found["index"].path == w.folder / "index/v1" and capfd.readouterr().err == ""


def test_two_models_share_one_index(w):
    blocks, one, other = w.make("blocks"), w.make("retriever"), w.make("retriever")
    for retriever in (one, other):
        w.make("model", index={"blocks": blocks, "retriever": retriever})
    w.make("qa-model", index={"blocks": blocks, "retriever": one})
    assert w.chosen("qa-model", "model", "blocks") == {"qa-model": "v1", "model": "v1", "blocks": "v1", "index": None}


def test_a_model_without_an_index_takes_the_newest_blocks(w):
    w.make("blocks")
    w.make("qa-model")
    w.make("blocks")
    assert w.chosen("qa-model", "blocks") == {"qa-model": "v1", "blocks": "v2", "index": None}


def test_vocabularies_and_rankings_fit(w):
    first = w.make("blocks", words="a b")
    w.make("ranking", blocks=first)
    w.make("retriever", words="a b")
    w.make("blocks", words="c d")
    assert w.chosen("blocks", "retriever") == {"blocks": "v1", "retriever": "v1"}
    assert w.chosen("blocks", "ranking") == {"blocks": "v1", "ranking": "v1"}
    assert w.chosen("blocks") == {"blocks": "v2"}


def test_none_fits(w):
    blocks, retriever = w.make("blocks"), w.make("retriever")
    w.make("model", index={"blocks": blocks, "retriever": retriever})
    newer = w.make("blocks")
    with pytest.raises(MismatchError, match="realmctl embed --blocks") as refused:
        w.chosen("model", "blocks", blocks=newer)
    assert str(newer.path) in str(refused.value) and "--retriever" in str(refused.value)


def test_what_is_no_artifact_is_told(w):
    w.make("blocks")
    with pytest.raises(ConfigError, match="--blocks"):
        choose({"blocks": Named("", ("blocks",), "--blocks")})
    with pytest.raises(InputError):
        choose({"blocks": Named(w.folder / "nothing", ("blocks",))})
    with pytest.raises(MismatchError, match="retriever"):
        choose({"retriever": Named(w.folder / "blocks", ("retriever",))})


def test_damaged_newest_versions_are_not_passed_over(w):
    """An older version in place of a damaged one would be a silent change."""
    w.make("blocks")
    damaged = w.make("blocks")
    damaged.file("data").chmod(0o644)
    damaged.file("data").write_text("longer than before")
    with pytest.raises(InputError, match="v2"):
        w.chosen("blocks")
