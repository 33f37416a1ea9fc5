"""The table of families has every family, and no deviation that the tests would refuse."""

from __future__ import annotations

import re

from docs.make_families import EXCEPT, HEAD, KINDS, KINDS_HEAD, OF_KINDS, PAGE, TABLE
from realmctl.extras.families import OFFERS
from realmctl.models.families.known import FAMILIES
from tests.fixtures import kinds


def test_the_table_of_families():
    table = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert table and HEAD in table[0]
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table[0].splitlines() if line.startswith("| `")
    ][1:]
    offered = OFFERS["realmctl.families"].items()
    towers = [name for name, where in offered if where.partition(":")[0].endswith((".tower_only", ".static"))]
    assert [cells[0] for cells in rows] == [name for name in FAMILIES.names() if name not in towers]
    [named] = re.findall(
        r"## Retrievers of other kinds\n\n(.*?) are retrievers alone", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert re.findall("`([a-z0-9_]+)`", named) == towers
    for model_type, *_, stages, states, log_probabilities, gradients, vectors in rows:
        assert stages == EXCEPT.get(model_type, "all").strip("`")
        assert max(map(float, (states, log_probabilities, gradients, vectors))) < 1e-5


def test_the_table_of_kinds():
    table = KINDS.search(OF_KINDS.read_text(encoding="utf-8"))
    assert table and KINDS_HEAD in table[0]
    rows = [line.replace(r"\|", "").split("|")[1:-1] for line in table[0].splitlines() if line.startswith("| `")]
    assert [cells[0].strip(" `") for cells in rows] == [*kinds.KINDS]
    for _, _, _, _, queries, blocks, export, gradients in rows:
        assert max(float(queries), float(blocks), float(gradients.strip() or 0)) < 1e-5 and float(export) < 2e-6
