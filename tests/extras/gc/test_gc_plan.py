"""What is kept, against reachability by brute force on random lineages."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from realmctl.extras.gc.collecting import DAMAGED, IN_USE, NEWEST, VersionNeeds, WorkspaceContents, reasons_to_keep

HASHES = st.frozensets(st.integers(0, 12).map(str), max_size=3)
VERSIONS = st.tuples(HASHES, HASHES, st.booleans(), st.sampled_from([False, False, False, True]))
"""(contents, needs, whether a process has it open, whether it is damaged)"""


def reachable(workspace: WorkspaceContents, needed_by_runs: frozenset[str], roots: set[Path]) -> set[Path]:
    """Walk over all pairs again and again until nothing is added."""
    versions = [version for series in workspace.series for version in series]
    kept = {one.path for one in versions if one.path in roots or one.contents & needed_by_runs}
    while True:
        more = {
            one.path for one in versions for other in versions if other.path in kept and one.contents & other.needs
        } - kept
        if not more:
            return kept
        kept |= more


@given(st.lists(st.lists(VERSIONS, max_size=5), max_size=4), HASHES, st.integers(1, 3))
def test_kept_is_what_can_be_reached(drawn, needed_by_runs, newest):
    series = [
        [
            VersionNeeds(Path(f"w/{name}/v{number}"), frozenset(), frozenset(), 1, "damaged")
            if damaged
            else VersionNeeds(Path(f"w/{name}/v{number}"), contents, needs, 1)
            for number, (contents, needs, _, damaged) in enumerate(versions, 1)
        ]
        for name, versions in enumerate(drawn)
    ]
    workspace = WorkspaceContents(series, {Path("w/0/v9.partial"): needed_by_runs})
    in_use = {
        Path(f"w/{name}/v{number}")
        for name, versions in enumerate(drawn)
        for number, (_, _, used, _) in enumerate(versions, 1)
        if used
    }
    damaged = {version.path for versions in series for version in versions if version.problem}
    whole = [[version.path for version in versions if version.path not in damaged] for versions in series]
    last = {path for versions in whole for path in versions[-newest:]}
    why = reasons_to_keep(workspace, newest, in_use)
    assert set(why) == reachable(workspace, needed_by_runs, in_use | damaged | last)
    assert all(why[path] == NEWEST for path in last)
    assert all(why[path] == DAMAGED for path in damaged - in_use)
    assert all(why[path] == IN_USE for path in in_use - last)


def test_what_an_input_was_made_from_is_kept_too():
    def version(name: str, contents: str, needs: str) -> VersionNeeds:
        return VersionNeeds(Path(name), frozenset(contents), frozenset(needs), 1)

    series = [
        [version("a/v1", "1", ""), version("a/v2", "4", ""), version("a/v3", "7", "")],
        [version("b/v1", "2", "1"), version("b/v2", "5", "")],
        [version("c/v1", "3", "2")],
    ]
    kept = reasons_to_keep(WorkspaceContents(series, {}), 1)
    assert {str(path) for path in kept} == {"a/v1", "a/v3", "b/v1", "b/v2", "c/v1"}
