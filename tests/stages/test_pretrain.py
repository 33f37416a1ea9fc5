"""`realmctl pretrain`: what it refuses, what it makes, and the refresher as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from realmctl.artifacts import open_artifact, require_descent, verify
from realmctl.cli.app import build
from realmctl.models.bert.files import load_masked_lm
from realmctl.models.retriever import Retriever
from realmctl.training.refresh.protocol import StepFolder
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import FIRMS, TOWNS, documents, make_index, metrics_of, pretrain
from tests.fixtures.retriever import make_retriever
from tests.fixtures.waiting import wait_until

ROOT = Path(__file__).parents[2]
SMALL = [
    "--steps",
    "4",
    "--batch-size",
    "2",
    "--candidates",
    "3",
    "--refresh",
    "inline",
    "--refresh-every",
    "2",
    "--precision",
    "fp32",
]


def realmctl(*arguments):
    return CliRunner().invoke(build(str(arguments[0])), [str(argument) for argument in arguments])


def named(chain, **others):
    """The options that name the chain's artifacts."""
    names = ("blocks", "spans", "retriever", "index", "encoder")
    return [part for name in names for part in (f"--{name}", others.get(name, getattr(chain, name)).path)]


def test_the_command_makes_a_model_and_says_where(chain, tmp_path):
    result = realmctl("pretrain", *named(chain), *SMALL, "--out", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "model/v1")
    model = open_artifact(tmp_path / "model")
    assert list(model.manifest.parts) == ["index", "reader", "retriever"]
    require_descent(model.part("index"), chain.blocks, model.part("retriever"))
    again = realmctl("pretrain", *named(chain), *SMALL, "--out", tmp_path / "model")
    assert again.stdout.strip() == result.stdout.strip() and "nothing to do" in again.stderr
    for name in ("loss", "retrieval_utility", "null_share", "index_age_steps", "grad_norm"):
        assert name in model.metrics and name in metrics_of(model)[0]


def test_dropout_is_the_models_own_or_the_one_asked_for(chain, tmp_path):
    own = load_masked_lm(chain.encoder.path)[0].config.hidden_dropout_prob
    assert own != 0.25
    for number, (asked, expected) in enumerate((([], own), (["--dropout", "0.25"], 0.25))):
        result = realmctl("pretrain", *named(chain), *SMALL, *asked, "--out", tmp_path / f"{number}")
        assert result.exit_code == 0, result.output
        model = open_artifact(tmp_path / f"{number}")
        assert load_masked_lm(model.path / "reader")[0].config.hidden_dropout_prob == expected
        retriever = Retriever.load(model.path / "retriever")
        assert retriever.query_tower.bert.encoder.layer[0].output.dropout.p == expected


def test_ablations_of_the_candidates(chain, tmp_path):
    ablations = ["--no-null-document", "--exclude-own", "nothing"]
    result = realmctl("pretrain", *named(chain), *SMALL, *ablations, "--out", tmp_path / "model")
    assert result.exit_code == 0, result.output
    model = open_artifact(tmp_path / "model")
    assert model.settings["null_document"] is False and model.settings["exclude_own"] == "nothing"
    assert all("retrieval_utility" in line and "null_share" not in line for line in metrics_of(model))


def foreign(chain, folder, what):
    """An artifact that does not belong to the chain."""
    other_blocks = {**documents(), "Ada Lorn": [["Ada Lorn was born in [[Ashby]].", "The end."], ["It was late."]]}
    blocks = make_blocks(folder / "blocks", other_blocks)
    if what == "blocks":
        return blocks
    if what == "index of another retriever":
        return make_index(folder, chain.blocks, make_retriever(folder / "retriever", chain.blocks, seed=1))
    if what == "index of other blocks":
        return make_index(folder, blocks, make_retriever(folder / "retriever", blocks))
    return make_retriever(folder / "retriever", make_blocks(folder / "words", {"One": [["Quite other words here."]]}))


@pytest.mark.parametrize(
    ("field", "what", "said"),
    [
        ("index", "index of another retriever", "does not belong to"),
        ("index", "index of other blocks", "does not belong to"),
        ("blocks", "blocks", "does not belong to|different vocabularies"),
        ("retriever", "retriever of other words", "different vocabularies"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(chain, tmp_path, field, what, said):
    other = foreign(chain, tmp_path / "other", what)
    result = realmctl("pretrain", *named(chain, **{field: other}), *SMALL, "--out", tmp_path / "model")
    assert result.exit_code == 4, result.output
    [line] = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert any(part in line for part in said.split("|"))
    assert not list(tmp_path.glob("model/v*"))


@pytest.mark.parametrize(
    "options",
    [
        ["--candidates", "1"],
        ["--lr", "0"],
        ["--retriever-lr", "0"],
        ["--max-index-age", "1"],
        ["--checkpoint-every", "0"],
        ["--warmup", "-1"],
    ],
)
def test_settings_that_cannot_work(chain, tmp_path, options):
    result = realmctl("pretrain", *named(chain), *SMALL, *options, "--out", tmp_path / "model")
    assert result.exit_code == 2, result.output
    assert not list(tmp_path.glob("model/v*"))


def test_queries_of_another_corpus(chain, tmp_path):
    """X is not Z: the spans descend from blocks that are not retrieved from."""
    from stages.tag import Tag

    sentences = {f"News {n}": [[f"Somebody of [[{FIRMS[n % 5]}]] came to [[{TOWNS[n % 7]}]]."]] for n in range(8)}
    texts = make_blocks(tmp_path / "texts", {**sentences, **documents()})
    spans = Tag(blocks=texts, tagger="anchors", query_length=24, workers=1).make(tmp_path / "spans")
    result = realmctl("pretrain", *named(chain, spans=spans), *SMALL, "--out", tmp_path / "model")
    if spans.manifest.files["tokenizer/vocab.txt"] != chain.blocks.manifest.files["tokenizer/vocab.txt"]:
        assert result.exit_code == 4  # another vocabulary: refused
    else:
        assert open_artifact(tmp_path / "model").lineage["blocks"] == chain.blocks.content


# The refresher as a process.


def test_background_refresh_keeps_the_index_young(chain, tmp_path, capsys):
    stage = pretrain(chain, refresh="background", steps=8, refresh_every=2, max_index_age=3, checkpoint_every=4)
    model = stage.make(tmp_path / "model")
    lines = metrics_of(model)
    assert max(line["index_age_steps"] for line in lines) <= 3
    assert any("index_wait_seconds" in line for line in lines)
    said = capsys.readouterr().err
    assert "waiting for a fresher one" in said and "index refresher stopped" in said
    verify(model)
    require_descent(model.part("index"), model.part("retriever"), chain.blocks)
    assert not refreshers_of(tmp_path)


def refreshers_of(folder):
    """Processes with `refresh` and this folder in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "refresh" in words and any(word.startswith(str(folder)) for word in words):
            found.append(int(path.parent.name))
    return found


def refreshing(live):
    """Whether a refresher that is alive says that it is at work."""
    try:
        beat = json.loads((live / "refresher.json").read_text())
    except OSError:
        return False
    return beat["state"] in ("embedding", "building") and beat["pid"] in refreshers_of(live)


@pytest.mark.slow
def test_a_refresher_started_by_hand(chain, tmp_path):
    """The multi-device mode: `realmctl refresh RUN/live` in another process, here on the same machine."""
    live, started = tmp_path / "model/v1.partial/live", []

    def start():
        wait_until((live / "refresh.json").exists)
        command = [sys.executable, "-P", "-m", "realmctl", "refresh", str(live), "--device", "cpu"]
        started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))

    thread = threading.Thread(target=start)
    thread.start()
    stage = pretrain(chain, refresh="background", refresh_device="elsewhere", steps=5, refresh_every=2, max_index_age=2)
    model = stage.make(tmp_path / "model")
    thread.join()
    assert max(line["index_age_steps"] for line in metrics_of(model)) <= 2
    assert started[0].wait(120) == 0, started[0].stderr.read()  # the live folder is gone, and so is it


@pytest.fixture(scope="module")
def large(tmp_path_factory, one_thread):
    """Blocks enough that a refresh takes a second or two, and the rest of a chain."""
    from stages.mlm_init import MlmInit
    from stages.tag import Tag

    folder = tmp_path_factory.mktemp("large")
    pages = {
        f"{title} {n}": [[f"{title} {n} came from [[{TOWNS[n % 7]}]].", "It was late."]]
        for n in range(200)
        for title in documents()
    }
    blocks = make_blocks(folder / "blocks", pages)
    retriever = make_retriever(folder / "retriever", blocks)
    make_index(folder, blocks, retriever)
    Tag(blocks=blocks, tagger="anchors", query_length=24, workers=1).make(folder / "spans")
    MlmInit(blocks=blocks, bert="scratch:L1-H16", steps=1, batch_size=2, length=24).make(folder / "encoder")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_kill_9_in_mid_refresh_and_the_same_command_again(large, tmp_path):
    live = tmp_path / "model/v1.partial/live"
    options = [
        "--steps",
        "60",
        "--batch-size",
        "2",
        "--candidates",
        "3",
        "--refresh-every",
        "10",
        "--max-index-age",
        "10",
        "--checkpoint-every",
        "5",
    ]
    command = [
        sys.executable,
        "-P",
        "-m",
        "realmctl",
        "pretrain",
        "-w",
        str(large),
        *options,
        "--out",
        str(tmp_path / "model"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for _ in range(2):
        trainer = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda trainer=trainer: refreshing(live) or trainer.poll() is not None)
        assert trainer.poll() is None, trainer.stderr.read()
        trainer.send_signal(signal.SIGKILL)
        trainer.communicate()
        wait_until(lambda: not refreshers_of(tmp_path))
        for step in StepFolder(live / "indexes").steps():
            verify(open_artifact(live / f"indexes/step-{step:08d}"))
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "continuing after step" in done.stderr
    model = open_artifact(done.stdout.strip())
    verify(model)
    assert [line["step"] for line in metrics_of(model)] == list(range(1, 61))
    assert max(line["index_age_steps"] for line in metrics_of(model)) <= 10
    require_descent(model.part("index"), model.part("retriever"))
    assert not refreshers_of(tmp_path) and not list(tmp_path.glob("model/*.partial"))
