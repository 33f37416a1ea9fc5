"""A file from outside that changes between its hash and the last look at it is never recorded under the old hash: exit code 3, nothing is made."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from realmctl.artifacts import version_numbers
from realmctl.errors import InputError
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.pipeline import Stage
from realmctl.pipeline.discovery import own_stages
from stages.chunk import Chunk
from tests.faults.counting import count
from tests.fixtures.chain import Chain, finetune
from tests.fixtures.encoder_folders import folder_for


def append(path):
    with path.open("a") as file:
        file.write("More. It was written while the file was read.\n")


def touch(path):
    """Other content of the same size at the same time: another file of this name."""
    status, text = path.stat(), path.read_text()
    other = path.with_name(f".{path.name}")
    other.write_text(text.swapcase())
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


CHANGES = {
    "append": lambda folder: append(folder / "a.txt"),
    "replace": lambda folder: touch(folder / "a.txt"),
    "delete": lambda folder: (folder / "b.txt").unlink(),
    "add": lambda folder: (folder / "deep/c.txt").write_text("Another one."),
}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "notes"
    (made / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "deep/d.txt"):
        (made / name).write_text(f"This is {name}. It is short.")
    return made


def changed_while_read(monkeypatch, kind: type[Stage], change):
    """Let `change` happen after the sources were hashed and before they are read."""
    origin = kind.origin

    def hashed(stage: Stage):
        found = origin(stage)
        change()
        return found

    monkeypatch.setattr(kind, "origin", hashed)


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_that_changes_while_chunk_reads_is_refused(folder, tmp_path, monkeypatch, change):
    cut = Chunk(corpus=(folder,), tokenizer="train:200", max_wordpieces=32, workers=1)
    with monkeypatch.context() as patch:
        changed_while_read(patch, Chunk, lambda: CHANGES[change](folder))
        with pytest.raises(InputError, match=r"(a|b|c)\.txt changed while it was read"):
            cut.make(tmp_path / "blocks")
    assert version_numbers(tmp_path / "blocks") == [] and not list((tmp_path / "blocks").glob("*.partial"))
    assert cut.make(tmp_path / "blocks").path.name == "v1"  # the same command again
    count("sources that change while they are read", 1)


def test_every_stage_looks_at_its_sources_again(chain: Chain, tmp_path, monkeypatch):
    """Of each stage with a source, the look is the same code; three that read questions or labels are tried."""
    questions = tmp_path / "questions.jsonl"
    questions.write_bytes(chain.questions.read_bytes())
    qa = finetune(chain).make(tmp_path / "qa")
    line = json.dumps({"question": "Where was Ada Lorn born?", "answer": ["Harrow"]}) + "\n"
    stages = [
        own_stages()["eval-em"](qa_model=qa, blocks=chain.blocks, questions=questions),
        finetune(chain, seed=5).__class__(**{**vars(finetune(chain, seed=5)), "questions": questions}),
    ]
    for stage in stages:
        with monkeypatch.context() as patch:
            changed_while_read(patch, type(stage), lambda: questions.open("a").write(line))
            with pytest.raises(InputError, match=r"questions\.jsonl changed while it was read"):
                stage.make(tmp_path / stage.command())
        assert version_numbers(tmp_path / stage.command()) == []
        assert not list((tmp_path / stage.command()).glob("*.partial"))
    count("sources that change while they are read", len(stages))


def test_what_changes_after_training_has_read_it_is_of_no_matter(chain: Chain, tmp_path, monkeypatch):
    questions = tmp_path / "questions.jsonl"
    questions.write_bytes(chain.questions.read_bytes())
    tuning = finetune(chain)
    tuning = type(tuning)(**{**vars(tuning), "questions": questions})
    step = loop_step(monkeypatch, lambda: append(questions))
    assert tuning.make(tmp_path / "qa").path.name == "v1" and step


def loop_step(monkeypatch, act):
    """Act at the first step of a training."""
    from realmctl.training import loop

    done, train = list[bool](), loop._Run.to_the_end

    def started(run):
        done.append(True)
        act()
        return train(run)

    monkeypatch.setattr(loop._Run, "to_the_end", started)
    return done


def test_an_encoder_that_changes_while_it_is_imported_is_refused(chain: Chain, tmp_path, monkeypatch):
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    from realmctl.imports import imported

    digest = imported.digest_of
    monkeypatch.setattr(
        imported, "digest_of", lambda *words: (digest(*words), (Path(encoder) / "config.json").touch())[0]
    )
    with pytest.raises(InputError, match=r"config\.json changed while it was read"):
        import_encoder(encoder, None, None, EncoderSettings(scale=20), tmp_path / "retriever")
    assert version_numbers(tmp_path / "retriever") == []


def test_what_the_run_itself_writes_within_the_folder_does_not_count(folder):
    cut = Chunk(corpus=(folder,), tokenizer="train:200", max_wordpieces=32, workers=1, bad_files="skip")
    assert cut.make(folder / "w/blocks").path.name == "v1"
