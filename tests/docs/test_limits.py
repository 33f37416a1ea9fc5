"""The page of limits is what the code has, and no limit is missing on it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docs.make_limits import LIMITS, OTHERS, PAGE, page

ROOT = Path(__file__).parents[2]
NAMED_LIKE_A_LIMIT = re.compile(r"(MAX|MOST|LARGEST)_\w+|\w+_LIMITS|\w+_MAX_\w+")


def constants(path: Path) -> set[str]:
    """The public constants at the top of a module that are named like a limit, with the module's name."""
    module = str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removeprefix("realmctl.")
    targets = [
        target
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    ]
    names = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return {f"{module}.{n.id}" for n in names if isinstance(n, ast.Name) and NAMED_LIKE_A_LIMIT.fullmatch(n.id)}


def test_the_page_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_limit_is_on_the_page():
    files = [path for folder in ("realmctl", "stages") for path in (ROOT / folder).rglob("*.py")]
    in_code = set().union(*map(constants, files))
    on_page = {name for limits in LIMITS.values() for name in limits}
    assert in_code - on_page - OTHERS.keys() == set()
    assert OTHERS.keys() <= in_code and on_page.isdisjoint(OTHERS)
