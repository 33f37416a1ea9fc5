"""Take out one guard after the other, and say whether its test notices: python -m tests.faults.guards

Exit code 1 when a test passes without its guard. All tests run in this process, so that libraries are loaded once.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from realmctl import errors
from realmctl.artifacts import artifact, manifest, series, writer
from realmctl.artifacts.disk import CheckedFile
from realmctl.extras.hnsw import hnsw
from realmctl.index.index_type import IndexDescription
from realmctl.models import weights
from realmctl.pipeline import making
from realmctl.training import checkpoint
from realmctl.training.refresh import child
from realmctl.training.refresh.child import ChildRefresher
from realmctl.training.refresh.protocol import RefreshFolder, StepFolder


def nothing(*arguments: Any, **named: Any) -> None:
    """In the place of a check that raises an error."""


def zero(*arguments: Any, **named: Any) -> int:
    """In the place of a count."""
    return 0


def yes(*arguments: Any, **named: Any) -> bool:
    """In the place of a question."""
    return True


def opened(folder: StepFolder, step: int, retriever: str | None = None) -> artifact.Artifact:
    """In the place of `StepFolder.whole`, which hashes every byte."""
    return artifact.open_artifact(folder.at(step))


def unsealed(path: Path) -> Any:
    """In the place of `read_sealed`."""
    return json.loads(path.read_text())


def all_may_read(folder: Path) -> None:
    """In the place of `write_protect`."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o444)


HOSTILE, FAULTS, TRAINING = "tests/faults/hostile/", "tests/faults/", "tests/training/"
ARTIFACTS, MANIFESTS, COMMITS = (
    HOSTILE + "test_hostile_artifacts.py::",
    HOSTILE + "test_odd_manifests.py::",
    FAULTS + "test_failed_commits.py::",
)
REFRESH, INDEX = TRAINING + "refresh/test_", FAULTS + "index/test_"
GUARDS: list[tuple[Any, str, Any, str]] = [
    (
        manifest,
        "_check_files",
        nothing,
        ARTIFACTS + "test_a_part_outside_the_artifact_is_refused_and_nothing_is_overwritten",
    ),
    (
        manifest,
        "_check_hashes",
        nothing,
        ARTIFACTS + "test_changed_blocks_with_a_new_file_hash_and_seal_are_refused",
    ),
    (artifact, "require_files", nothing, ARTIFACTS + "test_a_foreign_folder_is_refused"),
    (manifest, "_require", nothing, MANIFESTS + "test_an_odd_manifest_is_one_paragraph_and_no_traceback"),
    (manifest, "_require_known_format", nothing, MANIFESTS + "test_another_format_says_what_to_do"),
    (series, "is_whole", yes, COMMITS + "test_a_rotten_version_is_not_taken_for_done"),
    (series, "_last_number", zero, COMMITS + "test_the_number_of_a_deleted_version_is_not_given_again"),
    (making, "verify", nothing, COMMITS + "test_a_rotten_input_stops_the_stage_that_reads_it"),
    (CheckedFile, "_compare", nothing, COMMITS + "test_a_manifest_that_the_disk_lost_is_not_published"),
    (errors, "DEVICE_FAILED", (), COMMITS + "test_a_device_that_fails_while_reading_is_a_resource_error"),
    (
        writer,
        "write_protect",
        all_may_read,
        FAULTS + "test_surroundings.py::test_no_file_is_more_readable_than_the_mask_allows",
    ),
    (
        hnsw,
        "worse_canaries",
        zero,
        INDEX + "rewired_graphs.py::test_a_graph_with_other_valid_links_is_refused_although_its_hash_is_right",
    ),
    (
        hnsw.HnswIndexDescription,
        "check",
        IndexDescription.check,
        INDEX + "mutants.py::test_no_mutant_of_a_description_gives_another_answer",
    ),
    (hnsw, "digest_file", lambda path: "", INDEX + "mutants.py::test_no_mutant_of_a_graph_gives_another_answer"),
    (hnsw, "check_file", nothing, INDEX + "mutants.py::test_no_mutant_of_a_graph_with_a_new_hash_ends_the_process"),
    (
        checkpoint,
        "read_sealed",
        unsealed,
        TRAINING + "test_checkpoint.py::test_no_flipped_bit_of_an_unfinished_run_changes_what_it_ends_with",
    ),
    (
        weights,
        "OS_ERROR",
        re.compile("never"),
        TRAINING + "test_damaged_run.py::test_a_file_that_may_not_grow_is_exit_code_5_and_no_traceback",
    ),
    (StepFolder, "whole", opened, TRAINING + "test_damaged_run.py::test_a_damaged_index_is_built_again"),
    (StepFolder, "whole", opened, TRAINING + "test_damaged_run.py::test_a_damaged_snapshot_is_set_aside"),
    (RefreshFolder, "has_token", yes, REFRESH + "refresher.py::test_a_late_refresher_does_not_deliver"),
    (
        child,
        "PROGRESS",
        (*child.PROGRESS, "count"),
        REFRESH + "child.py::test_a_refresher_that_beats_without_progress_is_started_again",
    ),
    (
        ChildRefresher,
        "_kill",
        nothing,
        REFRESH + "child.py::test_a_stopped_refresher_does_not_delay_the_end_of_the_trainer",
    ),
]
"""(where the guard is, its name, what takes its place, the test that must fail then)"""


def notices(owner: Any, name: str, without: Any, test: str) -> bool:
    """Whether the test fails while the guard is taken out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, without)
        code = pytest.main(["-q", "-x", "--no-header", "--tb=no", "-p", "no:cacheprovider", test])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"{test} did not run: {code}")
    return code == pytest.ExitCode.TESTS_FAILED


def main() -> None:
    unnoticed = [f"{name}: {test}" for owner, name, without, test in GUARDS if not notices(owner, name, without, test)]
    print(
        f"taken out one after the other, {len(GUARDS) - len(unnoticed)} of {len(GUARDS)} guards were noticed by their tests"
    )
    sys.exit("\n".join(["not noticed:", *unnoticed]) if unnoticed else 0)


if __name__ == "__main__":
    main()
