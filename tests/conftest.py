"""What every test may use: quick files, the real command in this process, and the data folder where there is one."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from tqdm.std import tqdm

from realmctl import log
from realmctl.cli import app, available_stages
from tests.fixtures.small_stages import STAGES

if TYPE_CHECKING:
    from realmctl.artifacts import Artifact
    from tests.fixtures.chain import Chain

gc.disable()  # until all tests are collected, which imports a million objects
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process that a test starts compiles the package anew
sys.dont_write_bytecode = False
if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores, and so do the children of their tests
    os.environ.setdefault("OMP_NUM_THREADS", "1")

hypothesis.settings.register_profile("here", deadline=None)  # a busy machine fails no test
hypothesis.settings.load_profile("here")
hypothesis.settings.register_profile(
    "ci", derandomize=True, deadline=None
)  # a landing never hangs on a new random case
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

DOCUMENT = {
    "title": "Ada",
    "text": "Ada Lovelace met Charles Babbage in London. She wrote notes on his engine in 1843.",
}
Command = Callable[..., tuple[int, str, str]]
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_finish() -> None:
    """From now on garbage is collected among what tests make, not among modules and tests, which stay."""
    gc.set_threshold(50_000)
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> Iterator[None]:
    """A shell starts background jobs deaf to SIGINT, and so would be every command that a test interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def nothing_outlives_a_power_cut() -> Iterator[None]:
    """Tests write thousands of small files; waiting for the disk would be most of their time."""
    fsync, os.fsync = os.fsync, lambda handle: None
    yield
    os.fsync = fsync


@pytest.fixture(autouse=True, scope="session")
def bars_without_a_lock_between_processes() -> Iterator[None]:
    """Libraries show bars of tqdm, whose lock is a semaphore that forks share. A fork killed while it held the lock would stop all others."""
    tqdm.set_lock(threading.RLock())
    yield


@pytest.fixture(autouse=True)
def audible_log() -> Iterator[None]:
    """Undo `--quiet` after a test whose command was given it, and the label of a job that ran in this process."""
    yield
    log.set_quiet(False)
    log.set_label("")


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """One thread, so that runs can be equal bit for bit."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Chain:
    """One small chain of artifacts, from blocks to an index."""
    from tests.fixtures.chain import make_chain

    return make_chain(tmp_path_factory.mktemp("chain"))


@pytest.fixture(autouse=True)
def series_of_the_chain_keep_one_version(request: pytest.FixtureRequest) -> Iterator[None]:
    """A second version would be the newest for tests that come later, in an order that changes from run to run."""
    yield
    if "chain" in request.fixturenames:
        second = [*request.getfixturevalue("chain").folder.glob("*/v2")]
        assert not second, f"write {second[0].parent.name} into a folder of the test's own"


@pytest.fixture(scope="session")
def cross_encoder(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of transformers with a cross-encoder of random weights."""
    from realmctl.tokens.tokenizer import Tokenizer
    from tests.fixtures.cross_encoders import make_cross_encoder

    return make_cross_encoder(tmp_path_factory.mktemp("cross") / "encoder", Tokenizer.load(chain.blocks.path))


@pytest.fixture(scope="session")
def model(chain: Chain) -> Artifact:
    """A model of the chain, pre-trained a little."""
    from tests.fixtures.chain import pretrain

    return pretrain(chain, steps=2).make(chain.folder / "model")


@pytest.fixture(scope="session")
def qa_model(chain: Chain, model: Artifact) -> Artifact:
    """This model, fine-tuned a little."""
    from tests.fixtures.chain import finetune

    return finetune(chain, model, steps=3, optimizer="adamw").make(chain.folder / "qa-model")


@pytest.fixture
def shared_data() -> Path:
    """`../shared/data` beside the repository; a test that needs it is skipped where it is missing."""
    if not SHARED_DATA.is_dir():
        pytest.skip("no shared/data folder beside the repository")
    return SHARED_DATA


@pytest.fixture
def here(tmp_path, monkeypatch) -> Iterator[None]:
    """A folder of its own for a test of commands; `main` sets a signal handler and may silence the log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REALMCTL_WORKSPACE", raising=False)
    monkeypatch.setattr("warnings.filters", [])
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
    log.set_quiet(False)


@pytest.fixture
def realmctl(here, capsys, monkeypatch) -> Command:
    """The real command, in this process, whose number of threads stays as it is."""
    monkeypatch.setattr("realmctl.cli.invoke.use_free_cores", lambda: None)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            app.main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return int(left.value.code or 0), printed.out, printed.err

    return run


@pytest.fixture
def small(realmctl, monkeypatch) -> Command:
    """The same with stages that need no model."""
    for each in ("available_stages", "stages_by_name"):
        monkeypatch.setattr(available_stages, each, lambda: STAGES)
    return realmctl


@pytest.fixture
def workers_at_once(monkeypatch) -> None:
    """Workers start with the first unit, and not after a second."""
    monkeypatch.setattr("realmctl.execution.shards.ALONE_SECONDS", 0)


@pytest.fixture
def corpus(here) -> Path:
    """Three documents."""
    path = Path("corpus.jsonl")
    path.write_text("".join(json.dumps({**DOCUMENT, "id": n}) + "\n" for n in range(3)))
    return path
