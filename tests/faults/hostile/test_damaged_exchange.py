"""Import and export of what is damaged: every kind of damage to every file of every form ends in a result or in one clear error.

An artifact says the hash of each of its files, so an export of a damaged one is always refused. A folder of another project says no
hashes: a flipped bit of a weight is another weight. Whatever is refused leaves nothing behind.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.extras.hub.exports.forms import FORMS, export_form
from realmctl.extras.hub.exports.hub_export import export
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.extras.ir.rank import Rank
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.lab.cross_encoders.rerank_finetune import RerankFinetune
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.tokens.tokenizer import Tokenizer
from stages.embed import Embed
from stages.eval_em import EvalEm
from tests.faults.children import exit_code
from tests.faults.counting import count, counting
from tests.fixtures import encoder_folders as encoders
from tests.fixtures import realm_checkpoints as published
from tests.fixtures.chain import Chain
from tests.fixtures.cross_encoders import make_cross_encoder

REFUSED, MISMATCH = 3, 4
EVERY = 29
"""Which part of the damages the fast tests try."""


def flip(place: float) -> Callable[[bytes], bytes]:
    """Flip a bit at this part of the file."""

    def change(data: bytes) -> bytes:
        at = int(place * (len(data) - 1))
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return change


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "longer": lambda data: data + b"\n",
    "zeros": lambda data: bytes(len(data)),
    "of a page": lambda data: b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
    "a bit at its begin": flip(0),
    "a bit at a tenth": flip(0.1),
    "a bit in its middle": flip(0.5),
    "a bit at its end": flip(1),
}
OTHERS = ("missing", "a folder", "a pipe", "a link that leads nowhere")


def damaged(folder: Path, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Copies of a folder in which one file is damaged, each in one way, and what it is. A copy is removed before the next."""
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    for name, damage in itertools.product(names, [*CHANGES, *OTHERS]):
        copy = Path(shutil.copytree(folder, scratch / "copy"))
        path, data = copy / name, (folder / name).read_bytes()
        path.unlink()
        if damage in CHANGES:
            path.write_bytes(CHANGES[damage](data))
            path.chmod(0o444)
        elif damage == "a folder":
            path.mkdir()
        elif damage == "a pipe":
            os.mkfifo(path)
        elif damage != "missing":
            path.symlink_to("nowhere")
        yield f"{folder.name}/{name}, {damage}", copy
        shutil.rmtree(copy)


def tried(damages: Iterator[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
    """Some of them, or under `make faults` all."""
    return damages if counting() else itertools.islice(damages, 0, None, EVERY)


FOLDERS: dict[str, Callable[[Path], Path]] = {
    "embedder": lambda folder: published.write(folder, published.embedder()),
    "scorer": lambda folder: published.write(folder, published.scorer(), pickled=True),
    "encoder": lambda folder: published.write(folder, published.encoder()),
    "reader": lambda folder: published.write(folder, published.reader()),
    "open-qa": lambda folder: published.open_qa(folder, torch.ones(6, 16).numpy()),
    "plain": encoders.plain,
    "dpr": lambda folder: encoders.dpr(folder, "question_encoder"),
    **encoders.SENTENCE_FOLDERS,
}
PLAIN = ImportExtras(encoder=EncoderSettings(pooling="cls"))


@pytest.mark.parametrize("form", FOLDERS)
def test_what_is_imported(tmp_path, form):
    folder, out, found = FOLDERS[form](tmp_path / form), tmp_path / "out", 0
    extras = PLAIN if form == "plain" else ImportExtras()
    for what, copy in tried(damaged(folder, tmp_path)):
        made: list[Artifact] = []

        def act(copy: Path = copy, made: list[Artifact] = made) -> None:
            made += import_checkpoint(str(copy), out, extras, workers=1).values()

        code = exit_code(act)
        assert code in (0, REFUSED, MISMATCH, 2), what
        assert code == 0 or {path.name for path in out.rglob("*") if path.is_file()} <= {".lock"}, what
        assert all(verify(each) for each in made), what
        shutil.rmtree(out, ignore_errors=True)
        found += 1
    count("damaged folders imported (14 damages of each file)", found, forms=len(FOLDERS))


Exports = dict[str, tuple[Artifact, Callable[[Artifact, Path], object]]]


@pytest.fixture(scope="module")
def exports(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Exports:
    """{form: (what is exported, how)}"""
    folder = tmp_path_factory.mktemp("exports")
    parts = {"blocks": chain.blocks, "retriever": chain.retriever, "index": chain.index}
    ranking = Rank(**parts, queries=chain.questions, top=7).make(folder / "ranking")
    reader = str(make_cross_encoder(folder / "reader", Tokenizer.load(chain.blocks.path)))
    passages = folder / "passages.jsonl"
    labelled = {"query": "who", "positive_passages": [{"text": "Ada"}], "negative_passages": [{"text": "Ben"}]}
    passages.write_text(f"{json.dumps(labelled)}\n")
    made = {
        "blocks": chain.blocks,
        "embeddings": Embed(blocks=chain.blocks, retriever=chain.retriever).make(folder / "embeddings"),
        "ranking": ranking,
        "negatives": MineNegatives(ranking=ranking, blocks=chain.blocks, questions=chain.questions).make(
            folder / "negatives"
        ),
        "cross-encoder": RerankFinetune(start=reader, passages=passages, steps=1, batch_size=2, max_length=32).make(
            folder / "cross-encoder"
        ),
        "scores": EvalEm(**parts, questions=chain.questions, hits=5, precision="fp32").make(folder / "scores"),
    }

    def formed(name: str) -> Callable[[Artifact, Path], object]:
        blocks = chain.blocks if FORMS[name].needs_blocks else None
        return lambda artifact, out: export_form(artifact, out, name, blocks)

    hub = {"encoder": chain.encoder, "retriever": chain.retriever}
    return {
        **{f"hub, {name}": (artifact, lambda each, out: export(each.path, out)) for name, artifact in hub.items()},
        **{name: (made[form.kind], formed(name)) for name, form in FORMS.items()},
    }


def test_what_is_exported(exports, tmp_path):
    found = 0
    for artifact, write in exports.values():
        for what, copy in tried(damaged(artifact.path, tmp_path)):
            code = exit_code(lambda copy=copy, write=write: write(open_artifact(copy), tmp_path / "out"))
            assert code == REFUSED and {path.name for path in tmp_path.iterdir()} == {"copy"}, what
            found += 1
        write(artifact, tmp_path / "out")
        [left] = tmp_path.iterdir()
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    count("damaged artifacts exported (14 damages of each file)", found, forms=len(exports))
