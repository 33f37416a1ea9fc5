"""Fail one system call after another while an artifact is made, and count what happens: a program under LD_PRELOAD=injected.so.

Usage: python -m tests.faults.injection FOLDER STEP [STAGE...], with INJECTED_BELOW=FOLDER. Every STEP-th call is failed, in a forked
child. Prints a JSON line for each stage: its name, the number of faults, and what went wrong.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from realmctl.artifacts import open_artifact, verify
from realmctl.artifacts.disk import QUARANTINE
from realmctl.errors import RealmctlError, ResourceError, as_realmctl_error
from realmctl.extras.hub.exports.forms import export_form
from realmctl.extras.hub.exports.hub_export import export
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.log import set_quiet
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.revise import Revise
from tests.faults.children import ended, forked
from tests.fixtures import encoder_folders
from tests.fixtures.chain import Chain, finetune, make_chain
from tests.fixtures.small_stages import Plain

SYSTEM = ctypes.CDLL(None)
SYSTEM.injected_name.restype = ctypes.c_char_p
STRANGE = 70
"""Exit code of a child that met an error of another kind."""
PATIENCE = 120
Make = Callable[[Path], str]
"""Makes something below a folder that is missing or unfinished, and returns a hash of it."""


def works(chain: Chain) -> dict[str, Make]:
    """What is done under faults."""
    embed = Embed(blocks=chain.blocks, retriever=chain.retriever)
    embeddings = embed.make(chain.folder / "for-index")
    corpus, edits = chain.folder / "corpus.jsonl", chain.folder / "edits.jsonl"
    corpus.write_text("".join(json.dumps({"title": name, "text": f"{name} left Velford."}) + "\n" for name in "abcde"))
    tokenizer = str(chain.blocks.path / "tokenizer")
    chunked = Chunk(corpus=(corpus,), tokenizer=tokenizer, workers=1).make(chain.folder / "chunked")
    edits.write_text(json.dumps({"op": "add", "id": "new", "title": "new", "text": "Ada Lorn left Velford."}))
    encoder = encoder_folders.plain(chain.folder / "hub")
    extras = ImportExtras(encoder=EncoderSettings(pooling="cls"))
    stages = {
        "plain": Plain(),
        "embed": embed,
        "build-index": BuildIndex(embeddings=embeddings, type="hnsw", min_recall=0.0),
        "finetune": finetune(chain, steps=2, checkpoint_every=1, dev=chain.questions, dev_every=1),
        "revise": Revise(blocks=chunked, edits=edits, workers=1),
    }
    return {
        **{name: lambda out, stage=stage: stage.make(out).content for name, stage in stages.items()},
        "import": lambda out: import_checkpoint(str(encoder), out, extras)["retriever"].content,
        "export": lambda out: exported(lambda: export(chain.retriever.path, out), out),
        "export-blocks": lambda out: exported(lambda: export_form(chain.blocks, out, "psgs", None), out),
    }


def exported(write: Callable[[], object], out: Path) -> str:
    """The hash of what an export writes. Half a folder would be taken for a whole one, so the rerun must find none."""
    write()
    SYSTEM.injected_disarm()
    files = sorted(path for path in [out, *out.rglob("*")] if path.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(out)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def names(folder: Path) -> list[str]:
    """What lies in a folder, but for locks and temporary folders of a process that could not remove them."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "realmctl-" not in str(path))


def with_fault(make: Make, out: Path, number: int, log: Path) -> tuple[int, str]:
    """Make with call `number` failed, in a child. Returns its exit code, and what it made or how the call is named ("": none)."""
    told = log.with_suffix(".told")

    def child() -> int:
        SYSTEM.injected_arm(ctypes.c_long(number), number)
        try:
            made = make(out)
        except BaseException as error:
            SYSTEM.injected_disarm()
            told.write_text(SYSTEM.injected_name().decode())
            known = as_realmctl_error(error) if isinstance(error, Exception) else None
            if known is None or known.exit_code != ResourceError.exit_code:
                raise
            return known.exit_code
        SYSTEM.injected_disarm()
        told.write_text(f"{SYSTEM.injected_name().decode()}\n{made}")
        return 0

    code = ended(forked(child, log), PATIENCE)
    return (STRANGE if code is None else code), told.read_text() if told.exists() else ""


def inject(name: str, make: Make, folder: Path, step: int) -> tuple[int, list[str]]:
    """Fail every `step`-th call, one run each. Returns the number of faults, and what went wrong."""
    expected, number, struck, wrong = make(folder / "out" / name), step // 2, 0, list[str]()
    shutil.rmtree(folder / "out")
    before = names(folder / "chain")
    while True:
        out, log = folder / "out" / name, folder / "log"
        log.unlink(missing_ok=True)
        code, told = with_fault(make, out, number, log)
        call, _, made = told.partition("\n")
        if not call:
            return struck, wrong
        seen = {
            "ended with another error": code not in (0, ResourceError.exit_code),
            "made something else": code == 0 and made != expected,
            "changed its inputs": names(folder / "chain") != before,
            "set something aside": any(path.is_dir() for path in out.rglob(QUARANTINE)),
            "cannot be run again": code and again(make, out) != expected,
            "left a version that is damaged": not all(map(is_whole, out.rglob("v*/manifest.json"))),
        }
        wrong += [
            f"{name}, call {number}, {call}: {what}. {log.read_text()[-2000:]}" for what, is_so in seen.items() if is_so
        ]
        shutil.rmtree(folder / "out", ignore_errors=True)
        struck, number = struck + 1, number + step


def again(make: Make, out: Path) -> str:
    try:
        return make(out)
    except Exception as error:
        return repr(error)


def is_whole(manifest: Path) -> bool:
    try:
        return manifest.parent.suffix == ".partial" or verify(open_artifact(manifest.parent)) > 0
    except RealmctlError:
        return False


def main(folder: Path, step: int, chosen: list[str]) -> None:
    torch.set_num_threads(1)
    (folder / "tmp").mkdir()
    os.environ["TMPDIR"] = str(folder / "tmp")
    set_quiet(True)
    for name, make in works(make_chain(folder / "chain")).items():
        if name in chosen or not chosen:
            print(json.dumps([name, *inject(name, make, folder, step)]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
