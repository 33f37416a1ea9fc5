"""Run a pipeline file of this package on a user's documents, with an imported encoder as the first retriever."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path

from realmctl.artifacts import Artifact
from realmctl.artifacts.series import meant_version
from realmctl.artifacts.unfinished import letting_all_step_aside
from realmctl.corpus.chunking import in_its_language
from realmctl.corpus.languages import check_language, plain_language
from realmctl.corpus.reading import NO_PAGES
from realmctl.corpus.settings import ChunkSettings
from realmctl.errors import InputError
from realmctl.imports.encoder_folder import encoder_kind
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.models.retriever_settings import read_settings
from realmctl.pipeline import pipeline_file
from realmctl.pipeline.discovery import own_stages
from realmctl.pipeline.fields import flag_of
from realmctl.pipeline.sources import HUB_FILES, localise

HERE = Path(__file__).parent
SMALL_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
BLOCK_LENGTH = 200
"""Wordpieces of a block of documents that are searched. 128 make 70 % more blocks and find no more (docs/results/search-box/notes.md)."""
SHORTEST = 32
"""The shortest block that `chunk` cuts."""
MULTILINGUAL_ENCODER = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


def default_encoder(documents: Collection[Path], language: str) -> str:
    """Return the hub id of a small sentence encoder for documents: of other languages than English one that knows 50 languages.

    `language` is as of `chunk --language`.
    """
    check_language("--language", language)
    looked = ChunkSettings(language=language, bad_files="skip")  # what cannot be read says no language
    is_english = plain_language(in_its_language([*documents], looked).language) == "en"
    return SMALL_ENCODER if is_english else MULTILINGUAL_ENCODER


def search_command(index: Artifact, workspace: Path) -> str:
    """Return the command that searches this index. It is named where the workspace's index is another version."""
    named = "" if meant_version(index.path.parent) == index.path else f" --index {shlex.quote(str(index.path))}"
    return f'realmctl search "your words"{named} --workspace {shlex.quote(str(workspace))}'


def left_out(blocks: Artifact) -> dict[str, int]:
    """{reason: number} of the documents that blocks lack: without text, or set aside, as a file is that cannot be read."""
    found = {reason: count for reason, count in blocks.metrics["dropped"].items() if reason not in NO_PAGES}
    return {**found, **({"set_aside": aside} if (aside := blocks.metrics["quarantined"]) else {})}


def left_out_text(blocks: Artifact) -> str:
    """Say how many blocks are copies, and how many documents are left out, why, and where those that are set aside are listed, as the end of a sentence; empty for none."""
    found = left_out(blocks)
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in found.items()).replace("_", " ")
    listed = f" ({blocks.file('quarantine.jsonl.zst')} lists them)" if "set_aside" in found else ""
    copies = f"; {count:,} blocks say the same as another" if (count := blocks.metrics.get("copied_blocks")) else ""
    return copies + (f"; left out: {reasons}{listed}" if found else "")


def imported_retriever(encoder: str, workspace: Path, scale: float = 20) -> Artifact:
    """Import an encoder, a folder or hub id, as a retriever. `scale`: factor of the inner products, as `realmctl import --scale`.

    Raises InputError for a folder that holds no encoder.
    """
    folder = Path(localise(encoder, (), True, "--encoder", files=HUB_FILES))
    if encoder_kind(folder) is None:
        raise InputError(
            f"--encoder {encoder}: the folder holds no sentence encoder that can be used. `realmctl import-realm` reads checkpoints of REALM."
        )
    return import_encoder(folder, None, None, EncoderSettings(scale=scale), workspace / "retriever")


def run_shipped(
    name: str,
    workspace: Path,
    encoder: str,
    variables: Mapping[str, str],
    scale: float = 20,
    jobs: int = 1,
    only: Collection[str] | None = None,
) -> dict[str, Artifact]:
    """Import an encoder, and make the outputs of the pipeline file `NAME.yaml` of this package. What exists is not made again.

    Args:
        name: name of the file.
        workspace: folder of the artifacts.
        encoder: folder or hub id of an encoder. It becomes the artifact `retriever`, and the file's variable of that name.
        variables: the file's other variables. Each but `documents` is named after the option of the command that gives it.
        scale: factor of the inner products, as `realmctl import --scale`.
        jobs: stages that run at the same time.
        only: outputs to make, and none that need others; by default all.

    Returns:
        The artifact of each output, and `retriever`.
    """
    retriever = imported_retriever(encoder, workspace, scale)
    given = {**variables, "retriever": str(retriever.path)}
    if not given.get("max_wordpieces", "-"):
        given["max_wordpieces"] = str(max(SHORTEST, min(BLOCK_LENGTH, read_settings(retriever.path).block_length)))
    options = {variable: flag_of(variable) for variable in variables} | {"documents": "documents"}
    plan = pipeline_file.read(HERE / f"{name}.yaml", own_stages(), given, workspace, options)
    with letting_all_step_aside():
        made = plan.make([step for step in plan.steps if only is None or step.name in only], jobs)
    return {"retriever": retriever, **made}
