"""Put one wrong line after the other into a copy of the tree, and run the nearest tests: python -m tests.mutations [WORD...]

With words, only mutations are tried whose file or description holds one of them; what is known of the others stays. Writes
docs/mutations.json and the page made of it. Exit code 1 when a mutation survives that the table does not say survives, or when one
that it says survives is noticed; 2 when the table does not fit the code, or a test fails without any mutation.

Each mutation is tried in a fork of this process, which has loaded every library that the forks before loaded. At the end the tests
that noticed something are run without a mutation: they must pass.
"""

from __future__ import annotations

import compileall
import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import hypothesis
import pytest

from docs.make_mutations import PAGE, RESULTS, page
from tests.mutations.table import PLACES, misfits

ROOT = Path(__file__).parents[2]
SECONDS = 1200
"""A mutation whose tests take longer does not end. The machine may be busy."""
NOTHING_FAILED = ""


class FirstFailure:
    """A plug-in of pytest that keeps the name of the first test that failed."""

    name = NOTHING_FAILED

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.name = self.name or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.name = self.name or f"{report.nodeid}, which cannot be imported"


def copy_tree(folder: Path) -> None:
    """Copy the files that git knows or would add, and compile them."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for package in ("realmctl", "stages"):
        compileall.compile_dir(folder / package, quiet=2)


def is_ours(module: str) -> bool:
    """Whether a module is one of the tree."""
    return module.partition(".")[0] in ("docs", "examples", "realmctl", "stages", "tests", "__main__")


def run_tests(tree: Path, tests: Sequence[str], told: Connection) -> None:
    """Run tests of a tree in this process, and tell the name of the first that failed and the modules loaded. For a fork."""
    os.setsid()
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    sys.path[:0], sys.dont_write_bytecode = [str(tree)], True
    for name in filter(is_ours, list(sys.modules)):
        del sys.modules[name]
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # the smallest example is of no interest
    hypothesis.settings.register_profile("mutations", derandomize=True, deadline=None, phases=phases, database=None)
    options = ["-x", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-profile=mutations"]
    kept = FirstFailure()
    code = pytest.main([*options, *tests], plugins=[kept])
    failed = kept.name if kept.name or code == pytest.ExitCode.OK else f"pytest, which ended with {code}"
    told.send((failed, [name for name in sys.modules if not is_ours(name)]))


def first_failure(tree: Path, tests: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of the first test that failed, `NOTHING_FAILED` if none did, and the foreign modules that were loaded."""
    here, there = multiprocessing.Pipe(duplex=False)
    fork = multiprocessing.get_context("fork").Process(target=run_tests, args=(tree, tests, there))
    fork.start()
    there.close()
    found: tuple[str, list[str]] = "none: they do not end", []
    if here.poll(SECONDS):
        try:
            found = here.recv()
        except EOFError:
            found = "all: the process died", []
    with contextlib.suppress(ProcessLookupError):
        os.killpg(int(fork.pid or 0), signal.SIGKILL)
    fork.join()
    return found


def main(words: Sequence[str]) -> int:
    if faults := misfits(ROOT):
        print("\n".join(faults), file=sys.stderr)
        return 2
    chosen = [
        (place, mutation)
        for place in PLACES
        for mutation in place.mutations
        if not words or any(word in f"{place.file} {mutation.what}" for word in words)
    ]
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    found = {place.file: dict[str, str]() for place in PLACES}
    for place in PLACES:
        for mutation in place.mutations:
            if mutation.what in known.get(place.file, {}):
                found[place.file][mutation.what] = known[place.file][mutation.what]
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        tree = Path(name)
        copy_tree(tree)
        for number, (place, mutation) in enumerate(chosen, 1):
            path = tree / place.file
            whole, times = path.read_text(encoding="utf-8"), path.stat()
            path.write_text(whole.replace(mutation.text, mutation.becomes), encoding="utf-8")
            test, modules = first_failure(tree, place.tests)
            for module in modules:  # the next fork need not load them
                with contextlib.suppress(Exception):
                    import_module(module)
            path.write_text(whole, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            found[place.file][mutation.what] = test
            RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(f"{number}/{len(chosen)} {place.file}: {mutation.what}: {test or 'SURVIVED'}", flush=True)
        noticing = dict.fromkeys(found[place.file][mutation.what] for place, mutation in chosen)
        failed, _ = first_failure(tree, [test for test in noticing if "::" in test])
        if failed:
            print(f"without any mutation this fails: {failed}", file=sys.stderr)
            return 2
    if all(mutation.what in found[place.file] for place in PLACES for mutation in place.mutations):
        PAGE.write_text(page(found), encoding="utf-8")
    noticed = {mutation: bool(found[place.file][mutation.what]) for place, mutation in chosen}
    print(f"{sum(noticed.values())} of {len(chosen)} mutations were noticed")
    unforeseen = [mutation.what for mutation in noticed if noticed[mutation] == bool(mutation.survives)]
    if unforeseen:
        print("not as the table says: " + "; ".join(unforeseen), file=sys.stderr)
    return int(bool(unforeseen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
