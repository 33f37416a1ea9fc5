"""What the processes compare before they make an artifact together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from realmctl.artifacts import Origin
from realmctl.errors import MismatchError
from realmctl.pipeline import together
from realmctl.version import __version__


class Nothing:
    """A stage that must not run."""

    def run(self, out: Any) -> Any:
        raise AssertionError("it ran")

    run_first = run


def test_other_versions_are_refused_by_number(tmp_path):
    def exchange(value: Any) -> list[Any]:
        assert value == __version__
        return [value, value, "0.0.1"]

    with pytest.raises(MismatchError, match=r"0\.0\.1 in process 2") as error:
        together.make_together(
            Nothing(), lambda writer: None, True, tmp_path, Origin("x", "x", 1, {}, {}, {}), exchange
        )
    assert "Process 2 differs from process 0" in str(error.value)
    assert list(Path(tmp_path).iterdir()) == []
