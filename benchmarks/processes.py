"""Time the training steps of every stage in one process and in two, and three ways to add up gradients.

    python benchmarks/processes.py [--size L4-H256-A4] [--steps 20] [--rounds 1]

Part 1: each training stage on a generated world, the same batch, one thread a process. Printed: seconds of a step in one
process, in two, their ratio, and the efficiency (the ratio divided by 2). The same in CPU seconds of the first process, which
other programs disturb less, but which leave out the time that a process waits for the other one.
Part 2: a BERT with two processes, forward and backward. `after`: one sum of all gradients after the backward pass.
`ddp`: DistributedDataParallel. `buckets`: realmctl's hooks. Printed: seconds of a step, and the ratio to `after`.

The processes exchange through gloo on this machine. The fastest step counts, because other programs only slow a step down.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WAYS = ("after", "ddp", "buckets")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", default="L4-H256-A4")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--worker", choices=["stages", "ways"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work = stages_in_this_process if options.worker == "stages" else ways_in_this_process
        found = work(options)
        if os.environ["RANK"] == "0":
            print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as folder:
        make_inputs(Path(folder), options.size)
        rounds = [
            {count: start("stages", count, options, folder, f"{number}-{count}") for count in (1, 2)}
            for number in range(options.rounds)
        ]
        for clock in ("wall", "cpu"):
            print(f"{clock + ' seconds':16}{'1 process':>12}{'2 processes':>14}{'ratio':>8}{'efficiency':>12}")
            for name in (name for name in rounds[0][1] if name.endswith(clock)):
                one, two = (min(found[count][name] for found in rounds) for count in (1, 2))
                print(f"{name.split()[0]:16}{one:10.3f} s{two:12.3f} s{one / two:8.2f}{one / two / 2:11.0%}")
        ways = [start("ways", 2, options, folder, "") for _ in range(options.rounds)]
        best = {way: min(found[way] for found in ways) for way in WAYS}
        print(f"\n{'way':16}{'step':>12}{'ratio to after':>18}")
        for way in WAYS:
            print(f"{way:16}{best[way]:10.3f} s{best['after'] / best[way]:18.2f}")


def start(worker: str, count: int, options: argparse.Namespace, folder: str, out: str) -> dict[str, float]:
    """Run `count` processes. Returns what the first one printed."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        __file__,
        "--worker",
        worker,
        "--folder",
        folder,
        "--out",
        out,
        "--size",
        options.size,
        "--steps",
        str(options.steps),
    ]
    environment = {**os.environ, **shared, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    processes = [
        subprocess.Popen(command, env={**environment, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=log, text=True)
        for rank, log in enumerate([None, subprocess.DEVNULL][:count])
    ]
    printed = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit("a process failed; its message is above")
    found: dict[str, float] = json.loads(printed[0].splitlines()[-1])
    return found


def make_inputs(folder: Path, size: str) -> None:
    """The inputs of all stages, from a generated world."""
    from stages.build_index import BuildIndex
    from stages.chunk import Chunk
    from stages.embed import Embed
    from stages.ict_init import IctInit
    from stages.mlm_init import MlmInit
    from stages.tag import Tag

    world = folder / "world"
    script = [sys.executable, str(ROOT / "examples/world/make_world.py"), "--out", str(world), "--size", "small"]
    subprocess.run([*script, "--parallel-worlds", "0"], check=True, capture_output=True)
    blocks = Chunk(corpus=(world / "knowledge",), tokenizer="train:1000", max_wordpieces=96, workers=1).make(
        folder / "blocks"
    )
    texts = Chunk(corpus=(world / "sentences",), tokenizer=str(blocks.path), max_wordpieces=96, workers=1).make(
        folder / "texts"
    )
    Tag(blocks=texts, query_length=48, workers=1).make(folder / "spans")
    encoder = MlmInit(blocks=blocks, bert=f"scratch:{size}", steps=1, batch_size=2, length=48).make(folder / "encoder")
    retriever = IctInit(blocks=blocks, encoder=encoder, steps=1, batch_size=4).make(folder / "retriever")
    embeddings = Embed(blocks=blocks, retriever=retriever).make(folder / "embeddings")
    BuildIndex(embeddings=embeddings, type="exact").make(folder / "index")


def stages_in_this_process(options: argparse.Namespace) -> Mapping[str, float]:
    """Seconds of the fastest step of each stage."""
    import torch

    from realmctl.pipeline.discovery import own_stages
    from realmctl.training import data_parallel, loop

    torch.set_num_threads(1)
    folder = options.folder
    made = {name: folder / name for name in ("blocks", "encoder", "retriever", "index", "spans")}
    common = {"steps": options.steps, "precision": "fp32", "blocks": made["blocks"], "checkpoint_every": 10_000}
    start = {"encoder": made["encoder"], **common}
    searching = {**start, "retriever": made["retriever"], "index": made["index"]}
    [questions] = sorted((folder / "world").rglob("train.jsonl"))[:1]
    jobs: dict[str, tuple[str, dict[str, Any]]] = {
        "mlm-init": ("mlm-init", {**common, "bert": f"scratch:{options.size}", "batch_size": 16, "length": 96}),
        "condenser-init": ("condenser-init", {**start, "batch_size": 16, "length": 96}),
        "ict-init": ("ict-init", {**start, "batch_size": 16}),
        "pretrain": (
            "pretrain",
            {**searching, "spans": made["spans"], "batch_size": 4, "candidates": 4, "refresh": "never"},
        ),
        "finetune": (
            "finetune",
            {
                **searching,
                "questions": questions,
                "batch_size": 4,
                "retriever_beam": 100,
                "reader_beam": 3,
                "reader_length": 96,
            },
        ),
    }
    seconds: list[tuple[float, float]] = []
    plain = loop._Run._take

    def timed(run: Any, *arguments: Any) -> int:
        begun, busy = time.perf_counter(), time.process_time()
        taken = plain(run, *arguments)
        seconds.append((time.perf_counter() - begun, time.process_time() - busy))
        return taken

    loop._Run._take = timed  # type: ignore[method-assign]
    found = {}
    with data_parallel.process_group(torch.device("cpu")):
        for name, (stage, fields) in jobs.items():
            seconds.clear()
            own_stages()[stage](**fields).make(folder / options.out / name)
            for place, clock in enumerate(("wall", "cpu")):
                found[f"{name} {clock}"] = min(each[place] for each in seconds)
    return found


def ways_in_this_process(options: argparse.Namespace) -> Mapping[str, float]:
    """Seconds of the fastest forward and backward pass with the sum of the gradients, in each of three ways."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from realmctl.models.bert.files import scratch_config
    from realmctl.models.bert.modules import BertModel
    from realmctl.training import data_parallel
    from realmctl.training.gradient_buckets import GradientBuckets

    torch.set_num_threads(1)
    ids = torch.randint(5, 1000, (8, 96), generator=torch.Generator().manual_seed(0))

    def fresh() -> BertModel:
        torch.manual_seed(0)
        return BertModel(scratch_config(options.size, 30522), add_pooling_layer=False)

    def after() -> Callable[[], None]:
        model = fresh()

        def step() -> None:
            model(ids).last_hidden_state.square().mean().backward()
            gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            dist.all_reduce(flat)
            for gradient, part in zip(gradients, flat.split([each.numel() for each in gradients]), strict=True):
                gradient.copy_(part.view_as(gradient))
            model.zero_grad()

        return step

    def ddp() -> Callable[[], None]:
        model = DistributedDataParallel(fresh())

        def step() -> None:
            model(ids).last_hidden_state.square().mean().backward()
            model.zero_grad()

        return step

    def buckets() -> Callable[[], None]:
        model = fresh()
        reduction = GradientBuckets(model)

        def step() -> None:
            reduction.start(last=True)
            model(ids).last_hidden_state.square().mean().backward()
            reduction.finish()
            model.zero_grad()

        return step

    found = {}
    with data_parallel.process_group(torch.device("cpu")):
        for way, make in zip(WAYS, (after, ddp, buckets), strict=True):
            step, seconds = make(), []
            for number in range(3 + options.steps):
                dist.barrier()
                begun = time.perf_counter()
                step()
                if number >= 3:
                    seconds.append(time.perf_counter() - begun)
            found[way] = min(seconds)
    return found


if __name__ == "__main__":
    main()
