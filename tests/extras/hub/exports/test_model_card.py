"""The model card of an exported folder, and its way to a hub that is a folder here."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import huggingface_hub
import pytest
import yaml

from realmctl.errors import ConfigError, ResourceError
from realmctl.extras.hub.exports.hub_export import export
from realmctl.extras.hub.exports.push import check_repository, push
from stages.eval_em import EvalEm
from tests.conftest import Command


def test_the_card_says_what_the_model_is_and_how_it_was_made(chain, tmp_path):
    export(chain.retriever.path, tmp_path / "out")
    card = (tmp_path / "out/README.md").read_text()
    header = yaml.safe_load(card.split("---")[1])
    assert header["library_name"] == "sentence-transformers"
    assert f'SentenceTransformer("{tmp_path / "out"}")' in card and chain.retriever.content in card
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*)` \|$", card, re.MULTILINE))
    assert rows["block_length"] == str(chain.retriever.settings["block_length"])
    export(chain.encoder.path, tmp_path / "encoder", name="me/encoder")
    card = (tmp_path / "encoder/README.md").read_text()
    assert 'AutoModel.from_pretrained("me/encoder")' in card and "mlm-init" in card and "| `bert` |" not in card


def test_what_only_its_author_knows_and_the_scores_are_in_the_header(chain, tmp_path, realmctl: Command):
    """Read back by the hub's own reader."""
    scores = EvalEm(blocks=chain.blocks, questions=chain.questions, retriever=chain.retriever, index=chain.index).make(
        tmp_path / "scores"
    )
    facts = ["--license", "apache-2.0", "--language", "en", "--language", "de", "--base-model", "me/bert"]
    facts += ["--dataset", "wikipedia", "--scores", str(scores.path)]
    code, _, err = realmctl("export", str(chain.retriever.path), str(tmp_path / "out"), *facts)
    assert code == 0, err
    data = huggingface_hub.ModelCard.load(tmp_path / "out/README.md").data
    assert (data.license, data.language, data.base_model) == ("apache-2.0", ["en", "de"], "me/bert")
    assert data.datasets == ["wikipedia"] and data.model_name == "out"
    found = {result.metric_type: result.metric_value for result in data.eval_results}
    assert found["recall@5"] == scores.metrics["recall@5"]
    assert {result.dataset_name for result in data.eval_results} == {chain.questions.name}
    code, _, err = realmctl(
        "export", str(chain.retriever.path), str(tmp_path / "o"), "--scores", str(chain.blocks.path)
    )
    assert code == 4 and "--scores" not in str(tmp_path) and not (tmp_path / "o").exists()


class Hub:
    """A hub in a folder."""

    root = Path()

    def create_repo(self, name, *, private, exist_ok):
        assert private and exist_ok
        (self.root / name).mkdir(parents=True, exist_ok=True)
        return f"https://hub.test/{name}"

    def upload_folder(self, *, repo_id, folder_path, commit_message):
        shutil.copytree(folder_path, self.root / repo_id, dirs_exist_ok=True)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(Hub, "root", tmp_path / "hub")
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    return tmp_path / "hub"


def test_a_pushed_folder_is_the_exported_one(chain, tmp_path, hub, realmctl: Command):
    code, out, err = realmctl(
        "export", str(chain.retriever.path), str(tmp_path / "out"), "--push", "me/realm", "--json"
    )
    assert code == 0, err
    assert '"pushed_to": "https://hub.test/me/realm"' in out
    files = {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == {path.relative_to(hub / "me/realm") for path in (hub / "me/realm").rglob("*") if path.is_file()}
    assert all((tmp_path / "out" / file).read_bytes() == (hub / "me/realm" / file).read_bytes() for file in files)
    assert 'SentenceTransformer("me/realm")' in (hub / "me/realm/README.md").read_text()


def test_a_hub_that_fails_leaves_the_folder(tmp_path, hub, monkeypatch):
    def refuse(*_, **__):
        raise OSError("401\nUnauthorized")

    monkeypatch.setattr(Hub, "create_repo", refuse)
    with pytest.raises(ResourceError, match=r"me/x.*401 Unauthorized"):
        push(tmp_path, "me/x")


@pytest.mark.parametrize("name", ["realm", "a/b/c", "/x", "me/../x", "me/x y", ""])
def test_a_repository_has_an_owner_and_a_name(name):
    with pytest.raises(ConfigError, match="--push"):
        check_repository(name)


def test_flags_that_do_not_fit_the_kind(chain, tmp_path, realmctl: Command):
    for flags, message in (
        (["--push", "me/x"], "--push is for models"),
        (["--onnx"], "--onnx is for models"),
        (["--license", "mit"], "--license is for models"),
        (["--form", "vectors"], "made of embeddings"),
        (["--push", "nowhere"], "--push is for models"),
    ):
        code, _, err = realmctl("export", str(chain.blocks.path), str(tmp_path / "out"), *flags)
        assert code == 2 and message in err
    code, _, err = realmctl("export", str(chain.encoder.path), str(tmp_path / "out"), "--push", "nowhere")
    assert code == 2 and "OWNER/NAME" in err and not (tmp_path / "out").exists()
    code, _, err = realmctl(
        "export", str(chain.encoder.path), str(tmp_path / "out"), "--blocks", str(chain.blocks.path)
    )
    assert code == 2 and "--blocks is for embeddings" in err
