"""Every training stage, embedding, search, refresh and evaluation on a simulated GPU, without one. A refresher runs there in a process of its own too.

Between the start of a forward pass and the update of the weights nothing may wait for the device. Losses, vectors and scores are those of the CPU.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import masking_utils

from realmctl.artifacts import Artifact, Writer
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ResourceError
from realmctl.index import exact
from realmctl.index.exact import ExactIndex
from realmctl.index.settings import IndexSettings
from realmctl.models import encoder, inputs
from realmctl.models.inputs import Collator
from realmctl.models.optimizer import BertAdamW
from realmctl.models.retriever import Retriever
from realmctl.pipeline.discovery import own_stages
from realmctl.retrieval.embedding import embedding
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training import loop
from realmctl.training.mlm import MlmObjective
from realmctl.training.refresh import child
from realmctl.training.refresh.child import ChildRefresher
from realmctl.training.refresh.index_maker import request_of, retriever_origin, write_retriever
from realmctl.training.refresh.protocol import RefreshFolder
from realmctl.training.refresh.refresher import Refresher
from tests.fixtures.chain import TOWNS, Chain, metrics_of, pretrain
from tests.fixtures.cross_encoders import make_cross_encoder
from tests.fixtures.index import brute_force
from tests.fixtures.kinds import colbert
from tests.fixtures.language_models import make_babbler, make_gpt2, make_t5
from tests.fixtures.objectives import jobs_of
from tests.fixtures.simulated_device import DeviceTensor, SimulatedDevice, WaitError, simulated_device
from tests.fixtures.together import ROOT, Job, make_alone

OBJECTIVES = (
    "mlm-micro",
    "ict-cache",
    "spider",
    "dpr",
    "dpr-kl",
    "rerank-finetune",
    "late-finetune",
    "cocondenser",
    "retromae",
    "pretrain",
    "pretrain-gpt2",
    "pretrain-t5",
    "lm-init",
    "lm-finetune",
    "finetune",
    "closed-book",
)

IN_EVERY_RUN = ("mlm-micro", "ict-cache", "dpr", "pretrain", "pretrain-gpt2", "finetune")
IN_BFLOAT16 = ("mlm-micro", "ict-cache", "retromae", "pretrain", "pretrain-gpt2", "finetune")


@pytest.fixture(scope="module")
def jobs(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    """Two steps of each objective, without dropout; the index is refreshed between the steps of pre-training."""
    folder = tmp_path_factory.mktemp("jobs")
    found = {name: job for name, job in jobs_of(chain, folder).items() if name in (*OBJECTIVES, "pretrain-micro")}
    gpt2, t5 = (str(make(folder / make.__name__, dropout=0.0)) for make in (make_gpt2, make_t5))
    short = {"batch_size": 3, "lr": 1e-3, "warmup": 1, "precision": "fp32", "dropout": 0.0}
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    start = make_cross_encoder(folder / "cross", Tokenizer.load(chain.blocks.path), **still)
    scored = folder / "scored.jsonl"
    passages = [{"title": "", "text": f"{town} is far.", "score": float(n)} for n, town in enumerate(TOWNS)]
    scored.write_text(
        "".join(
            json.dumps(
                {"query": f"Where is {one['text']}?", "positive_passages": [one], "negative_passages": passages[:3]}
            )
            + "\n"
            for one in passages[3:]
        )
    )
    taught = {
        "passages": scored,
        "hard_negatives": 2,
        "batch_size": 4,
        "micro_batch": 2,
        **{name: short[name] for name in ("lr", "warmup", "precision")},
    }
    masked = {name: value for name, value in found["pretrain"].fields.items() if name != "encoder"}
    found |= {
        "dpr-kl": Job("dpr-finetune", {**found["dpr"].fields, **taught, "loss": "kl"}),
        "rerank-finetune": Job("rerank-finetune", {"start": str(start), "max_length": 32, **taught}),
        "late-finetune": Job("late-finetune", {"start": str(colbert(folder / "late", dropout=0.0)), **taught}),
        "lm-init": Job("lm-init", {"lm": t5, "spans": chain.spans, **short}),
        "lm-finetune": Job("lm-finetune", {"lm": gpt2, "questions": chain.questions, **short}),
        "pretrain-gpt2": Job("pretrain", {**masked, "reader_lm": gpt2, "target_length": 40}),
        "pretrain-t5": Job("pretrain", {**masked, "reader_lm": t5, "target_length": 40}),
    }
    return {name: dataclasses.replace(job, fields={**job.fields, **fewer(job)}) for name, job in found.items()}


def fewer(job: Job) -> dict[str, Any]:
    return {"steps": 2, **({"refresh_every": 1} if "refresh_every" in job.fields else {})}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedDevice]:
    """A simulated GPU, for which nothing may wait from a forward pass to the update."""
    gradients, update = loop._Run._gradients, BertAdamW.step
    # With T5 transformers itself reads whether there is padding, to leave out the mask.
    monkeypatch.setattr(masking_utils, "_ignore_bidirectional_mask_sdpa", lambda *_, **__: False)
    with simulated_device() as device:

        def without_waits(run: Any, parts: Any) -> Any:
            with device.without_waits():
                return gradients(run, parts)

        def updated(optimizer: Any) -> None:
            with device.without_waits():
                update(optimizer)

        monkeypatch.setattr(loop._Run, "_gradients", without_waits)
        monkeypatch.setattr(BertAdamW, "step", updated)
        yield device


def made(job: Job, out: Path, **fields: Any) -> Artifact:
    return make_alone(dataclasses.replace(job, fields={**job.fields, **fields}), out)


def losses(artifact: Artifact) -> list[float]:
    return [line["loss"] for line in metrics_of(artifact) if "loss" in line]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in IN_EVERY_RUN else pytest.mark.slow)
        for name in (*OBJECTIVES, "pretrain-micro")
    ],
)
def test_losses_are_those_of_the_cpu_and_no_step_waits(jobs, request, tmp_path, name):
    here = made(jobs[name], tmp_path / "here")
    request.getfixturevalue("device")  # from here on
    there = made(jobs[name], tmp_path / "there", device="cuda:0")
    assert losses(there) == pytest.approx(losses(here), rel=1e-4) and len(losses(here)) == 2
    if name not in IN_BFLOAT16:
        return
    rounded = made(jobs[name], tmp_path / "rounded", device="cuda:0", precision="bf16", steps=1)
    assert losses(rounded) != losses(there)[:1] and losses(rounded) == pytest.approx(losses(there)[:1], rel=0.05)


def whole_products(loss: Any, host: Any) -> Any:
    ids = host.pin_memory().to("cuda:0", non_blocking=True)
    return loss + 0 * (ids @ ids.T).sum()


@pytest.mark.parametrize(
    ("mistake", "error", "where"),
    [
        (lambda loss, host: loss * loss.item(), WaitError, "_local_scalar_dense"),
        (lambda loss, host: loss if loss > 0 else -loss, WaitError, "_local_scalar_dense"),
        (lambda loss, host: loss.cpu(), WaitError, "_to_copy to the CPU"),
        (lambda loss, host: loss + 0 * loss.nonzero().sum(), WaitError, "nonzero"),
        (lambda loss, host: loss + 0 * loss[None][loss[None] > 0].sum(), WaitError, "mask"),
        (lambda loss, host: loss + 0 * host.to("cuda:0", non_blocking=True).sum(), WaitError, "pinned"),
        (lambda loss, host: loss + 0 * host.pin_memory().to("cuda:0").sum(), WaitError, "blocks"),
        (lambda loss, host: loss + 0 * torch.tensor([1], device="cuda:0").sum(), WaitError, "pinned"),
        (lambda loss, host: (loss + 0 * host).sum(), RuntimeError, "same device"),
        (lambda loss, host: loss + 0 * F.embedding(host, torch.ones(500, 1, device="cuda:0")).sum(), RuntimeError, "same device"),
        (whole_products, RuntimeError, "int64"),
    ],
    ids=["item", "bool", "cpu", "nonzero", "mask", "unpinned", "blocking", "list", "left-on-cpu", "ids-left-on-cpu", "integer-product"],
)  # fmt: skip
def test_a_mistake_in_a_loss_is_noticed(jobs, device, monkeypatch, tmp_path, mistake, error, where):
    plain, host = MlmObjective.loss, torch.arange(6).view(2, 3)
    monkeypatch.setattr(MlmObjective, "loss", lambda objective, part: (mistake(plain(objective, part)[0], host), {}))
    with pytest.raises(error, match=where):
        made(jobs["mlm-micro"], tmp_path / "made", device="cuda:0")


@pytest.mark.parametrize(
    ("module", "sends", "error"),
    [
        (encoder, lambda tensor, device: tensor, RuntimeError),
        (inputs, lambda tensor, device: tensor.to(device, non_blocking=True), WaitError),
    ],
    ids=["left-on-cpu", "unpinned"],
)
def test_a_mistake_in_a_copy_is_noticed(jobs, device, monkeypatch, tmp_path, module, sends, error):
    monkeypatch.setattr(module, "to_device", sends)
    with pytest.raises(error):
        made(jobs["mlm-micro"], tmp_path / "made", device="cuda:0")


@pytest.mark.parametrize("batch_size", [3, 20])
def test_embedding_reads_back_once_and_copies_without_waiting(chain, device, batch_size):
    corpus, collator = Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    model, rows = Retriever.load(chain.retriever.path), range(40)
    expected = embedding.embed_blocks(model, collator, corpus, rows, precision="fp32")
    model = model.to("cuda:0")
    before = len(device.waits)
    vectors = embedding.embed_blocks(model, collator, corpus, rows, precision="fp32", batch_size=batch_size)
    assert device.waits[before:] == ["_to_copy to the CPU"]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.fixture
def live(chain, tmp_path) -> RefreshFolder:
    """The folder that a trainer shares with its refresher, with a snapshot."""
    settings = pretrain(chain, precision="fp32")
    folder = RefreshFolder(tmp_path / "live")
    folder.place(request_of(settings))
    origin = retriever_origin(settings, Writer(tmp_path / "run", settings.origin()))
    write_retriever(folder.snapshots.at(2), origin, Retriever.load(chain.retriever.path), chain.blocks, 2)
    return folder


def test_a_refresher_embeds_and_measures_recall_on_the_device(live, device):
    assert Refresher(live, "cpu").refresh_newest() and not device.waits
    expected = np.load(live.indexes.at(2) / "vectors.npy")
    live.indexes.remove(2)
    assert Refresher(live, "cuda:0").refresh_newest()
    assert device.waits.count("_to_copy to the CPU") == 1, "the vectors"
    np.testing.assert_allclose(np.load(live.indexes.at(2) / "vectors.npy"), expected, atol=1e-5)
    live.indexes.remove(2)
    live.place(dataclasses.replace(live.request(), index=IndexSettings(type="int8", min_recall=0.0)))
    assert Refresher(live, "cuda:0").refresh_newest()
    assert device.waits.count("_to_copy to the CPU") > 2, "also what exact search found"


def test_an_input_that_a_refresher_leaves_on_the_cpu_is_noticed(live, device, monkeypatch):
    monkeypatch.setattr(inputs, "to_device", lambda tensor, device: tensor)
    with pytest.raises(RuntimeError, match="same device"):
        Refresher(live, "cuda:0").refresh_newest()


CHILD = """
import runpy
from realmctl.models import inputs
from tests.fixtures.simulated_device import simulated_device
MISTAKE
with simulated_device():
    runpy.run_module("realmctl", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def child_with(monkeypatch) -> Callable[[str], None]:
    """Has the child refreshers of this test run `realmctl refresh` on the simulated GPU, with a mistake."""
    plain = ChildRefresher.command
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(child, "RESTARTS", 0)

    def use(mistake: str) -> None:
        program = CHILD.replace("MISTAKE", mistake)
        monkeypatch.setattr(ChildRefresher, "command", lambda self: [sys.executable, "-c", program, *plain(self)[4:]])

    return use


LOCKSTEP = {"steps": 5, "refresh": "lockstep", "refresh_every": 2, "precision": "fp32", "device": "cuda:0"}


@pytest.mark.slow
def test_a_refresher_in_a_child_process_computes_on_the_device(chain, device, child_with, tmp_path):
    """Its indexes are those of a refresher on the CPU, so the steps that search them have the same losses."""
    found = []
    for name in ("cpu", "cuda:0"):
        child_with("")
        made = pretrain(chain, **LOCKSTEP, refresh_device=name).make(tmp_path / name[:4])
        found.append([(line["loss"], line["index_age_steps"]) for line in metrics_of(made)])
    assert [age for _, age in found[1]] == [0, 1, 2, 3, 2]
    assert found[1] == [(pytest.approx(loss, rel=1e-4), age) for loss, age in found[0]]


@pytest.mark.slow
def test_a_mistake_of_a_refresher_in_a_child_process_is_noticed(chain, device, child_with, tmp_path):
    child_with("inputs.to_device = lambda tensor, device: tensor")
    with pytest.raises(ResourceError, match="same device"):
        pretrain(chain, **LOCKSTEP, refresh_device="cuda:0").make(tmp_path / "model")


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_search_waits_once_however_many_chunks_there_are(monkeypatch, device, dtype):
    """The upload of the queries, ties, scores and ids. Small whole numbers have exact scores, most of them tied."""
    draw = np.random.default_rng(0)
    matrix, queries = (draw.integers(-2, 3, (count, 4)).astype(dtype) for count in (500, 9))
    wanted_scores, wanted_ids = brute_force(matrix.astype(np.float32), queries.astype(np.float32), 20)
    counts = []
    for rows in (7, 2**17):
        monkeypatch.setattr(exact, "ROWS_AT_ONCE", rows)
        index = ExactIndex(matrix, "cuda:0")
        index.search(queries.astype(np.float32), 20)
        before = len(device.waits)
        scores, ids = index.search(queries.astype(np.float32), 20)
        counts.append(len(device.waits) - before)
        assert (ids == wanted_ids).all() and (scores == wanted_scores).all()
    assert counts[0] == counts[1] <= 5, device.waits


def test_stages_that_train_nothing_give_what_they_give_on_the_cpu(chain, qa_model, model, device, tmp_path):
    stages, blocks = own_stages(), {"blocks": chain.blocks, "precision": "fp32"}
    parts, prompt = {"retriever": chain.retriever, "index": chain.index}, tmp_path / "prompt.txt"
    prompt.write_text("{block}\nQuestion:")
    for command, fields in {
        "eval-em": {**blocks, "qa_model": qa_model, "questions": chain.questions},
        "eval-cloze": {**blocks, "retriever": chain.retriever, "sentences": 12},
        "eval-utility": {**blocks, "model": model, "spans": chain.spans, "queries": 12},
        "generate-queries": {**blocks, "lm": str(make_babbler(tmp_path / "lm")), "prompt": prompt, "sample": 6},
        "rank": {**blocks, **parts, "queries": chain.questions},
    }.items():
        here, there = (
            stages[command](**fields, device=name).make(tmp_path / command / name[:4]) for name in ("cpu", "cuda:0")
        )
        numbers = [
            {name: value for name, value in each.metrics.items() if isinstance(value, float) and "second" not in name}
            for each in (here, there)
        ]
        assert numbers[1] == pytest.approx(numbers[0], rel=1e-4, abs=1e-6), command


def test_the_device_itself(device):
    x = torch.arange(6.0, device="cuda:0").view(2, 3)
    assert isinstance(x, DeviceTensor) and x.device == torch.device("cuda:0") and x.is_cuda
    view = x[1:]
    view.add_(1)
    assert x.tolist() == [[0, 1, 2], [4, 5, 6]] and (x.sum() + torch.tensor(1.0)).item() == 19
    weight = torch.nn.Linear(3, 2).to("cuda:0").weight
    weight.sum().backward()
    assert weight.grad is not None and weight.grad.device == x.device and weight.is_leaf
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (x @ weight.T).dtype == torch.bfloat16 and (x @ weight.T).softmax(1).dtype == torch.float32
    with pytest.raises((RuntimeError, TypeError)):
        x.numpy()
