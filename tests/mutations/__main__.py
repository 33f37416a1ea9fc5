"""Mutate the heart of the code by cosmic-ray, and run the nearest tests of each mutant: python -m tests.mutations [WORD...]

For each file below a number of mutants is drawn, the same for a seed. Those that no test notices are printed with their diff and written to
build/mutations/survivors.txt. Exit code 1 when fewer than `NOTICED` of all are noticed. With words, only files whose path holds one of them are tried.
cosmic-ray must be installed in this environment (`make mutations` does so).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SURVIVORS = ROOT / "build" / "mutations" / "survivors.txt"
PLACES = {
    "realmctl/models/marginal.py": ["tests/models/test_marginal.py"],
    "realmctl/models/in_batch.py": ["tests/models/test_in_batch.py"],
    "realmctl/models/span_head.py": ["tests/models/test_span_head.py"],
    "realmctl/training/realm.py": ["tests/training/test_pretrain.py", "tests/training/test_pretrain_official.py"],
    "realmctl/training/losses.py": ["tests/training/test_losses.py", "tests/training/test_pretrain.py"],
    "realmctl/training/in_batch.py": ["tests/training/test_in_batch.py", "tests/training/test_ict.py"],
    "realmctl/training/gradient_cache.py": ["tests/training/test_gradient_cache.py"],
    "realmctl/retrieval/search/candidates.py": ["tests/retrieval/search/test_candidates.py"],
    "realmctl/index/exact.py": ["tests/index/test_exact.py"],
    "realmctl/corpus/blocks.py": ["tests/corpus/test_blocks.py"],
    "realmctl/artifacts/series.py": ["tests/artifacts/test_series.py"],
    "realmctl/questions/scoring.py": ["tests/questions/test_scoring.py", "tests/extras/score/test_scoring.py"],
}
"""The nearest tests of each file."""
DRAWN, SEED = 20, 1
"""Mutants of each file."""
NOTICED = 0.8
"""Share of the mutants that tests must notice. Some mutants are equal to the code: a bound that is never reached, a message."""
SECONDS = 600.0
TYPES = "core/ReplaceBinaryOperator_BitOr_%"
"""`X | None` of an annotation, whose mutants change nothing."""


def copy_tree(folder: Path) -> None:
    """Copy the files that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in listed.split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def mutants(folder: Path, place: str, tests: list[str]) -> list[tuple[str, str]]:
    """Try mutants of a file in a copy of the tree. Return (outcome, diff) of each."""
    command = f"env PYTHONPATH={folder} {sys.executable} -P -m pytest -x -q -p no:cacheprovider {' '.join(tests)}"
    described = {"module-path": place, "timeout": SECONDS, "excluded-modules": [], "test-command": command}
    lines = ["[cosmic-ray]", *(f"{name} = {json.dumps(value)}" for name, value in described.items())]
    (folder / "mutations.toml").write_text("\n".join([*lines, "[cosmic-ray.distributor]", 'name = "local"', ""]))
    session = folder / "mutations.sqlite"
    session.unlink(missing_ok=True)
    program = [sys.executable, "-m", "cosmic_ray.cli"]
    subprocess.run([*program, "baseline", "mutations.toml"], cwd=folder, check=True)
    subprocess.run([*program, "init", "mutations.toml", session.name], cwd=folder, check=True)
    with sqlite3.connect(session) as found:
        where = "module_path, start_pos_row, start_pos_col, operator_name, occurrence"
        query = f"SELECT job_id FROM mutation_specs WHERE operator_name NOT LIKE ? ORDER BY {where}"
        jobs = [job for (job,) in found.execute(query, (TYPES,))]
        kept = random.Random(SEED).sample(jobs, min(DRAWN, len(jobs)))
        for table in ("mutation_specs", "work_items"):
            found.execute(f"DELETE FROM {table} WHERE job_id NOT IN ({','.join('?' * len(kept))})", kept)
    subprocess.run([*program, "exec", "mutations.toml", session.name], cwd=folder, check=True)
    with sqlite3.connect(session) as found:
        return list(found.execute("SELECT test_outcome, diff FROM work_results"))


def main(words: list[str]) -> int:
    SURVIVORS.parent.mkdir(parents=True, exist_ok=True)
    tried, survived = 0, list[str]()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        copy_tree(folder)
        for place, tests in PLACES.items():
            if words and not any(word in place for word in words):
                continue
            found = mutants(folder, place, tests)
            own = [diff for outcome, diff in found if outcome.lower().endswith("survived")]
            print(f"{place}: {len(found) - len(own)} of {len(found)} mutants noticed", flush=True)
            tried, survived = tried + len(found), [*survived, *own]
    text = "\n\n".join(survived) + "\n"
    SURVIVORS.write_text(text, encoding="utf-8")
    print(text)
    return int(len(survived) > (1 - NOTICED) * tried)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
