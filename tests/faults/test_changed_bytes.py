"""Flipped bits and cut files in artifacts of every kind: `verify` notices each, and no other exception escapes."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.errors import InputError, MismatchError
from realmctl.pipeline import Stage
from stages.embed import Embed
from stages.eval_em import EvalEm
from tests.faults.counting import count, rounds
from tests.faults.tampering import cut, flipped, overwrite
from tests.fixtures.chain import finetune, pretrain

SEED = 22
FLIPS, CUTS, READ = 160, 40, 20


@pytest.fixture(scope="module")
def artifacts(chain, tmp_path_factory) -> list[Artifact]:
    """A copy of one artifact of every kind of the chain, which may be damaged."""
    folder = tmp_path_factory.mktemp("damaged")
    model = pretrain(chain, steps=2).make(folder / "whole/model")
    made = [chain.blocks, chain.spans, chain.encoder, chain.retriever, chain.index, model]
    made.append(finetune(chain, model, steps=2).make(folder / "whole/qa-model"))
    copies = [folder / "copies" / each.kind / "v1" for each in made]
    for each, copy in zip(made, copies, strict=True):
        shutil.copytree(each.path, copy)
    return [open_artifact(copy) for copy in copies]


def files_of(artifacts: list[Artifact]) -> list[tuple[Artifact, Path]]:
    found = [(one, path) for one in artifacts for path in sorted(one.path.rglob("*")) if path.is_file()]
    return [(one, path) for one, path in found if path.stat().st_size]


def noticed(artifact: Artifact) -> bool:
    try:
        verify(open_artifact(artifact.path))
    except (InputError, MismatchError):
        return True
    return False


def changed(artifacts: list[Artifact], number: int, change) -> None:
    """Damage random files one after the other, and restore each."""
    draw, files = random.Random(SEED), files_of(artifacts)
    for _ in range(number):
        artifact, path = draw.choice(files)
        data = path.read_bytes()
        damaged = change(draw, data)
        overwrite(path, damaged)
        assert noticed(artifact), f"{path} with {change.__name__}"
        overwrite(path, data)


def test_every_flipped_bit_is_noticed(artifacts):
    changed(artifacts, FLIPS * rounds(), flipped)
    count("single-bit flips", FLIPS * rounds(), seed=SEED, kinds=len(artifacts))


def test_a_stage_refuses_every_flipped_input_that_nobody_verified(artifacts, chain, tmp_path):
    readers: dict[str, Callable[[Artifact], Stage]] = {
        "blocks": lambda blocks: Embed(blocks=blocks, retriever=chain.retriever),
        "retriever": lambda retriever: Embed(blocks=chain.blocks, retriever=retriever),
        "spans": lambda spans: pretrain(replace(chain, spans=spans)),
        "encoder": lambda encoder: finetune(replace(chain, encoder=encoder)),
        "index": lambda index: finetune(replace(chain, index=index)),
        "model": lambda model: finetune(chain, model),
        "qa-model": lambda model: EvalEm(qa_model=model, blocks=chain.blocks, questions=chain.questions),
    }
    draw, files = random.Random(SEED), files_of(artifacts)
    for _ in range(READ * rounds()):
        artifact, path = draw.choice(files)
        data = path.read_bytes()
        overwrite(path, flipped(draw, data))
        with pytest.raises((InputError, MismatchError)):
            readers[artifact.kind](open_artifact(artifact.path)).make(tmp_path / "out")
        overwrite(path, data)
    count("single-bit flips in the inputs of stages, not verified before", READ * rounds(), seed=SEED)


def test_every_cut_file_is_noticed(artifacts):
    changed(artifacts, CUTS * rounds(), cut)
    count("truncated files", CUTS * rounds(), seed=SEED, kinds=len(artifacts))
