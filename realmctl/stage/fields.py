"""The fields of a stage: what each of them is to the stage, and the flag it becomes."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Any

from realmctl.errors import ConfigError

if TYPE_CHECKING:
    from realmctl.stage.stage import Stage

ROLE = "realmctl"


Unless = Callable[[Mapping[str, Any]], bool]
"""Given the other fields that were named, whether an artifact is not wanted."""


@dataclass(frozen=True)
class Role:
    """What a field is to its stage; kept in the field's metadata."""

    name: str  # reads, source, setting or runtime
    help: str
    kinds: tuple[str, ...] = ()
    optional: bool = False
    unless: Unless | None = None
    named: bool = False
    later: bool = False
    positional: bool = False
    literals: tuple[str, ...] = ()
    hub: bool = False
    choices: Callable[[], Sequence[str]] | None = None

    def check_choice(self, value: Any, where: str) -> None:
        """Raise ConfigError naming `where` for a value that is not among the choices."""
        if self.choices is not None and value is not None and value not in (names := self.choices()):
            raise ConfigError(f"{where}: {value!r} is none of {', '.join(names)}.")


def _field(role: Role, default: Any) -> Any:
    return dataclasses.field(default=default, metadata={ROLE: role}, kw_only=True)


def reads(
    *kinds: str, help: str, optional: bool = False, unless: tuple[str, ...] | Unless = (), named: bool = False
) -> Any:
    """An input artifact of one of `kinds`, or one that holds such a part (a model for its index).

    On the command line it defaults to the workspace's. `optional`: only if there is one; `unless`: not when
    all of these fields are given, or not when this says so of the fields given; `named`: never, it must be named.
    """
    spared = unless if callable(unless) else _all_given(unless) if unless else None
    role = Role("reads", help, kinds, optional or named, spared, named)
    return _field(role, None if optional or named or spared else MISSING)


def _all_given(names: tuple[str, ...]) -> Unless:
    return lambda given: all(given.get(name) is not None for name in names)


def source(
    help: str,
    *,
    default: Any = MISSING,
    positional: bool = False,
    literals: tuple[str, ...] = (),
    hub: bool = False,
) -> Any:
    """Something outside, known by its content: a path, `-`, a literal such as `train:8000`, or a hub id."""
    return _field(Role("source", help, positional=positional, literals=literals, hub=hub), default)


def setting(
    help: str, *, default: Any = MISSING, later: bool = False, choices: Callable[[], Sequence[str]] | None = None
) -> Any:
    """A value that changes the result.

    `choices`: the names that it can have, where installed packages can add some. Other choices are a Literal.

    `later`: added to a stage that was in use already. The recipe leaves it out while it has its default, which is what
    the stage did before, so that nothing made before has to be made again.
    """
    return _field(Role("setting", help, later=later, choices=choices), default)


def runtime(help: str, *, default: Any = MISSING) -> Any:
    """A value that changes only the speed or the place of work."""
    return _field(Role("runtime", help), default)


def roles(stage: type[Stage]) -> dict[str, Role]:
    """{field name: role} in order of declaration."""
    return {item.name: item.metadata[ROLE] for item in dataclasses.fields(stage)}  # type: ignore[arg-type]


def hints(stage: type[Stage]) -> dict[str, Any]:
    """{field name: type}."""
    return typing.get_type_hints(stage)


def flag_of(name: str) -> str:
    """The option of a field: `--max-wordpieces`."""
    return "--" + name.replace("_", "-")
