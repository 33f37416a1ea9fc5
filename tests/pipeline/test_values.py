"""Values: numbers and truths however they are spelled, and nothing that only looks like one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from realmctl.errors import ConfigError
from realmctl.pipeline.values import typed


@pytest.mark.parametrize(
    ("hint", "value", "wanted"),
    [
        (float, "3e-5", 3e-5),
        (float, 2, 2.0),
        (int, "12", 12),
        (int, 1e5, 100_000),
        (int | None, None, None),
        (int | None, "3", 3),
        (bool, "true", True),
        (bool, False, False),
        (bool | None, "FALSE", False),
        (str, 8000, "8000"),
        (Path, "x", Path("x")),
        (tuple[str, ...], "a", ("a",)),
        (tuple[Literal["a", "b", "c"], ...], "c, a", ("a", "c")),
        (tuple[Literal["a", "b", "c"], ...], ["b,a", "b"], ("a", "b")),
        (tuple[Literal["a", "b", "c"], ...], [], ()),
        (tuple[Path, ...], ["a", "b"], (Path("a"), Path("b"))),
    ],
)
def test_values_become_what_their_field_says(hint, value, wanted):
    found = typed(hint, value, "--x")
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, 2.5),
        (int, True),
        (int, "x"),
        (int, None),
        (int, float("nan")),
        (int, float("inf")),
        (int, []),
        (float, "nan"),
        (float, float("inf")),
        (float, True),
        (float, "x"),
        (float, None),
        (bool, 1),
        (bool, "yes"),
        (bool, None),
        (str, True),
        (str, None),
        (str, ["a"]),
        (str, {}),
        (Path, 5),
        (Path, None),
        (tuple[int, ...], ["a"]),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(hint, value):
    with pytest.raises(ConfigError, match=r"^--x: .* is not "):
        typed(hint, value, "--x")


def test_a_name_that_is_none_of_a_choice_is_refused_with_all_of_them():
    with pytest.raises(ConfigError, match=r"^--x: 'd'.*a, b"):
        typed(tuple[Literal["a", "b"], ...], ["a,d"], "--x")
