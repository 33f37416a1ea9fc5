"""`realmctl mlm-init` and `realmctl ict-init`: what they make and what they refuse."""

from __future__ import annotations

import pytest
from transformers import AutoModelForMaskedLM
from typer.testing import CliRunner

from realmctl.artifacts import open_artifact
from realmctl.cli.app import build
from realmctl.models.bert.files import load_masked_lm
from realmctl.models.retriever import Retriever
from stages.ict_init import IctInit
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Stopped, metrics_of, stop_at

TINY = ["--bert", "scratch:L1-H16", "--steps", "2", "--batch-size", "4"]


def realmctl(*arguments):
    return CliRunner().invoke(build(str(arguments[0])), [str(argument) for argument in arguments])


@pytest.mark.parametrize("practice", [False, pytest.param(True, marks=pytest.mark.house)])
def test_mlm_init_makes_a_bert_that_transformers_loads(chain, tmp_path, practice):
    spans = ["--spans", chain.spans.path] if practice else ["--length", "16"]
    result = realmctl("mlm-init", "--blocks", chain.blocks.path, *spans, *TINY, "--out", tmp_path / "encoder")
    assert result.exit_code == 0, result.output
    made = open_artifact(result.stdout.strip())
    assert AutoModelForMaskedLM.from_pretrained(made.path).config.hidden_size == 16
    assert load_masked_lm(made.path)[1] and made.has("vocab.txt")
    assert made.metrics["steps"] == 2 and len(metrics_of(made)) == 2


def test_dropout_of_a_loaded_bert_is_its_own_or_the_one_asked_for(chain, tmp_path):
    options = ["--blocks", chain.blocks.path, "--steps", "1", "--batch-size", "2", "--length", "16"]
    before = load_masked_lm(chain.encoder.path)[0].config
    for number, (dropout, expected) in enumerate(((None, before.hidden_dropout_prob), (0.0, 0.0), (0.25, 0.25))):
        asked = [] if dropout is None else ["--dropout", dropout]
        result = realmctl("mlm-init", "--bert", chain.encoder.path, *options, *asked, "--out", tmp_path / f"{number}")
        mlm = load_masked_lm(open_artifact(result.stdout.strip()).path)[0]
        assert mlm.config.hidden_dropout_prob == mlm.config.attention_probs_dropout_prob == expected
        assert mlm.bert.encoder.layer[0].output.dropout.p == expected


def test_layer_decay_moves_the_embeddings_less_than_the_head(chain, tmp_path):
    options = [
        "--bert",
        chain.encoder.path,
        "--blocks",
        chain.blocks.path,
        "--steps",
        "3",
        "--batch-size",
        "4",
        "--length",
        "16",
    ]
    before = load_masked_lm(chain.encoder.path)[0]
    moved = {}
    for decay in ("1", "0.1"):
        result = realmctl("mlm-init", *options, "--warmup", "0", "--layer-decay", decay, "--out", tmp_path / decay)
        assert result.exit_code == 0, result.output
        after = load_masked_lm(open_artifact(result.stdout.strip()).path)[0]
        names = "bert.embeddings.position_embeddings.weight", "cls.predictions.transform.dense.weight"
        moved[decay] = [float((after.state_dict()[n] - before.state_dict()[n]).abs().max()) for n in names]
    assert moved["0.1"][0] < 0.2 * moved["1"][0] and moved["0.1"][1] > 0.8 * moved["1"][1]
    for wrong in ("0", "1.5", "nan"):
        assert realmctl("mlm-init", *options, "--layer-decay", wrong, "--out", tmp_path / "wrong").exit_code == 2


def test_ict_init_starts_from_an_encoder_or_a_folder(chain, tmp_path):
    options = [
        "--blocks",
        chain.blocks.path,
        "--steps",
        "1",
        "--batch-size",
        "4",
        "--projection",
        "8",
        "--out",
        tmp_path / "retriever",
    ]
    made = [
        open_artifact(realmctl("ict-init", *options, *start).stdout.strip())
        for start in (["--encoder", chain.encoder.path], ["--workspace", tmp_path, "--bert", chain.encoder.path])
    ]
    assert [artifact.path.name for artifact in made] == ["v1", "v2"]
    assert all(Retriever.load(artifact.path).projection == 8 for artifact in made)
    assert made[0].lineage["encoder"] == chain.encoder.content


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("mlm-init", ["--mask-rate", "1"]),
        ("mlm-init", ["--length", "2"]),
        ("mlm-init", ["--steps", "0"]),
        ("mlm-init", ["--bert", "scratch:nosuch"]),
        ("ict-init", ["--batch-size", "1"]),
        ("ict-init", ["--mask-rate", "2"]),
        ("ict-init", ["--lr", "0"]),
        ("ict-init", ["--device", "abacus"]),
    ],
)
def test_settings_that_cannot_work(chain, tmp_path, command, options):
    result = realmctl(
        command, "--blocks", chain.blocks.path, "-w", tmp_path, *TINY, *options, "--out", tmp_path / "made"
    )
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[-1].startswith("error:")
    assert not list(tmp_path.glob("made/v*"))


def test_a_bert_with_other_words(chain, tmp_path):
    other = make_blocks(
        tmp_path / "blocks", {"One": [["Quite other words.", "And more of them."], ["A last one.", "The end."]]}
    )
    result = realmctl(
        "ict-init", "--blocks", other.path, "--bert", chain.encoder.path, "-w", tmp_path, "--out", tmp_path / "made"
    )
    assert result.exit_code == 4 and "vocabulary" in result.stderr
    result = realmctl("ict-init", "--blocks", other.path, "--encoder", chain.encoder.path, "--out", tmp_path / "made")
    assert result.exit_code == 4 and "vocabularies" in result.stderr
    assert not list(tmp_path.glob("made/v*"))


def test_other_settings_than_those_of_an_unfinished_run(chain, tmp_path, monkeypatch):
    monkeypatch.setattr("realmctl.artifacts.unfinished.BRIEF_SECONDS", 0)
    stage = IctInit(blocks=chain.blocks, encoder=chain.encoder, steps=4, batch_size=4, checkpoint_every=2)
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            stage.make(tmp_path / "made")
    options = [
        "--blocks",
        chain.blocks.path,
        "--encoder",
        chain.encoder.path,
        "--batch-size",
        "4",
        "--out",
        tmp_path / "made",
    ]
    result = realmctl("ict-init", *options, "--steps", "5")
    assert result.exit_code == 4 and "steps: 4 there, 5 here" in result.stderr
    assert (tmp_path / "made/v1.partial/.scratch/checkpoints/step-00000002").is_dir()
    assert realmctl("ict-init", *options, "--steps", "4").exit_code == 0
