"""The fields of a stage: the role of each field, and the command-line flag that it becomes."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, Literal, get_args

from realmctl.amounts import number_text
from realmctl.errors import ConfigError

ROLE = "realmctl"
"""The key of the `Role` in a field's metadata."""

Replaced = Callable[[Mapping[str, Any]], bool]
"""Takes the values of the other fields. Returns whether they replace the artifact, so that it is not needed."""


Check = Callable[[str, Any], None]
"""Takes the flag and its value. Raises ConfigError."""


MOST = 10**9
"""Largest number where no upper end is declared. No run has as many steps, no batch as many examples."""
MOST_WORKERS = 1024
"""Most processes or threads that one command starts on a machine."""


@dataclass(frozen=True)
class Range:
    """Where a number must lie. Each end is None where there is no limit."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def __contains__(self, number: float) -> bool:
        return (
            (self.at_least is None or number >= self.at_least)
            and (self.above is None or number > self.above)
            and (self.at_most is None or number <= self.at_most)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        """The limits in words, such as `from 1 to 32` or `above 0 and below 1`."""
        if self.at_least is not None and self.at_most is not None:
            return f"from {number_text(self.at_least)} to {number_text(self.at_most)}"
        ends = {"at least": self.at_least, "above": self.above, "at most": self.at_most, "below": self.below}
        return " and ".join(f"{words} {number_text(end)}" for words, end in ends.items() if end is not None)


@dataclass(frozen=True)
class Role:
    """The role of a field in its stage."""

    name: str
    """`reads`, `source`, `setting` or `runtime`; in a command that makes no artifact also `argument` or `output`."""
    help: str
    kinds: tuple[str, ...] = ()
    """reads: the kinds of artifact that are accepted."""
    optional: bool = False
    """reads: the stage works without this artifact."""
    replaced_by: Replaced | None = None
    """reads: whether other fields replace this artifact."""
    ignored: bool = False
    """reads: whether an artifact that is named is ignored, with a note, where `replaced_by` holds. Otherwise it is read."""
    explicit_only: bool = False
    """reads: the workspace's artifact is never taken; the user must name one."""
    instead_of: str = ""
    """reads an index: the model whose own index is taken as long as it is of the blocks."""
    positional: bool = False
    """source: an argument of the command instead of an option. reads: an argument beside the option."""
    literals: tuple[str, ...] = ()
    """source: prefixes of values that are not paths, such as `train:`."""
    hub: bool = False
    """source: a hub id is accepted."""
    files: tuple[str, ...] = ()
    """source: names of the files that are read of a folder; others are neither fetched nor part of the recipe. Empty: all are."""
    choices: Callable[[], Sequence[str]] | None = None
    """setting, runtime: returns the names that the value can have."""
    range: Range = Range()
    """setting, runtime: where a number must lie."""
    check: Check | None = None
    """setting, runtime: a further check of the value."""
    left_out_at: object = ...
    """setting: the value at which the recipe leaves it out. `...`: none."""
    used_with: str = ""
    """setting, runtime: the field, `field=value`, or fields with `|` between them, without which this one says nothing."""
    used_without: str = ""
    """setting, runtime: the field beside which this one says nothing."""
    advanced: bool = False
    """Whether `--help` leaves the option to `--help-all`."""
    panel: str = ""
    """Title of the option's panel in the help, in place of that of its role."""
    short: str = ""
    """A second name of the option, of one letter, such as `-k`."""
    environment: str = ""
    """output: the environment variable that gives the default."""
    completes: bool = False
    """argument: the shell completes artifacts."""

    def check_value(self, value: object, where: str) -> None:
        """Check that a value is one of the choices and lies in the range. Raises ConfigError, which names `where`."""
        if value is None:
            return
        if self.choices is not None and value not in (names := self.choices()):
            raise ConfigError(f"{where}: {value!r} is not one of {', '.join(names)}.")
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int | float) and number not in self.range:
                raise ConfigError(f"{where} {number} must be {self.range}.")
        if self.check is not None:
            self.check(where, value)


def _field(role: Role, default: object) -> Any:
    return dataclasses.field(default=default, metadata={ROLE: role}, kw_only=True)


def reads(
    *kinds: str,
    help: str,
    optional: bool = False,
    replaced_by: tuple[str, ...] | Replaced = (),
    unused_when: Replaced | None = None,
    explicit_only: bool = False,
    instead_of: str = "",
    positional: bool = False,
    advanced: bool = False,
    default: object = MISSING,
) -> Any:
    """Declare an input artifact. On the command line it defaults to the workspace's artifact of the field's name.

    Args:
        kinds: Accepted kinds. An artifact that contains a part of one of these kinds, such as a model for its index, is
            accepted too.
        help: Help text of the flag.
        optional: The default is used only if the workspace has such an artifact.
        replaced_by: The default is not used if all of these fields have a value, or if this function of the fields' values
            returns true.
        unused_when: The artifact is not read if this function of the fields' values returns true. One that is named is then
            ignored, with a note, so that it changes neither the recipe nor which versions are taken.
        explicit_only: There is no default; the artifact is used only when the user names it.
        instead_of: For an index: the field of the model whose own index is taken as long as it is of the blocks. Otherwise the
            newest index of the blocks and of that model is taken from the series `index` beside the blocks.
        positional: The command also takes the artifact as its argument.
        advanced: `--help` leaves the option to `--help-all`.
        default: None where the stage can do without it: with `optional`, `explicit_only`, `replaced_by` or `unused_when`. It stands in the
            call, because type checkers read it there.
    """
    replaced = replaced_by if callable(replaced_by) else _all_given(replaced_by) if replaced_by else unused_when
    if (optional or explicit_only or bool(instead_of) or bool(replaced)) != (default is None):
        raise TypeError("default=None goes with optional, explicit_only, instead_of, replaced_by or unused_when")
    by_name = explicit_only or bool(instead_of)
    role = Role(
        "reads",
        help,
        kinds,
        optional or by_name,
        replaced,
        unused_when is not None,
        by_name,
        instead_of,
        positional=positional,
        advanced=advanced,
    )
    return _field(role, default)


def _all_given(names: tuple[str, ...]) -> Replaced:
    return lambda given: all(given.get(name) is not None for name in names)


def source(
    help: str,
    *,
    default: object = MISSING,
    positional: bool = False,
    literals: tuple[str, ...] = (),
    hub: bool = False,
    files: tuple[str, ...] = (),
    used_with: str = "",
    used_without: str = "",
    advanced: bool = False,
    panel: str = "",
) -> Any:
    """Declare an input from outside: a path, `-`, a literal such as `train:8000`, or a hub id. The recipe has its hash."""
    role = Role(
        "source",
        _told(help, used_with, used_without),
        positional=positional,
        literals=literals,
        hub=hub,
        files=files,
        used_with=used_with,
        used_without=used_without,
        advanced=advanced,
        panel=panel,
    )
    return _field(role, default)


def argument(help: str, *, default: object = MISSING, completes: bool = False) -> Any:
    """Declare what a command takes without the name of an option, such as a question. Only a command that makes no artifact has it.

    Args:
        help: Help text.
        default: Value where none is given. A tuple takes any number of values.
        completes: The shell completes artifacts.
    """
    return _field(Role("argument", help, positional=True, completes=completes), default)


def output(help: str, *, default: object = MISSING, short: str = "", environment: str = "") -> Any:
    """Declare where a command that makes no artifact writes, or how.

    Args:
        help: Help text of the flag.
        default: Value where none is given.
        short: A second name of one letter, such as `-o`.
        environment: The variable that gives the default.
    """
    return _field(Role("output", help, short=short, environment=environment), default)


def setting(
    help: str,
    *,
    default: object = MISSING,
    choices: Callable[[], Sequence[str]] | None = None,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    check: Check | None = None,
    left_out_at: object = ...,
    used_with: str = "",
    used_without: str = "",
    advanced: bool = False,
    panel: str = "",
    short: str = "",
    kind: Literal["setting", "runtime"] = "setting",
) -> Any:
    """Declare a value that changes the result. It is part of the recipe.

    Args:
        help: Help text of the flag.
        default: Value where none is given.
        choices: Returns the names that the value can have, where installed packages can add some. Other choices are a
            Literal.
        at_least, above, at_most, below: Limits of a number. Without an upper end it is at most `MOST`.
        check: A further check of this value alone. What concerns several settings together is in the stage's `check`.
        left_out_at: For a setting that a stage gets after a release: the value at which the stage does what it did before. The recipe leaves
            the setting out there, so work that an earlier version finished is not done again.
        used_with: The field without which this one says nothing; `field=value` where one value of it is needed, and `one|other` where either
            field will do. The help begins with it. Without it a value other than the default is refused, or left out if a preset or the
            defaults of a pipeline gave it.
        used_without: The field beside which this one says nothing, likewise.
        advanced: `--help` leaves the option to `--help-all`, because few people set it.
        panel: Title of the option's panel in the help, where a command has panels of its own.
        short: A second name of one letter, such as `-k`.
        kind: `runtime` declares what `runtime` does.
    """
    role = Role(
        kind,
        _told(help, used_with, used_without),
        choices=choices,
        range=_range(at_least, above, at_most, below),
        check=check,
        left_out_at=left_out_at,
        used_with=used_with,
        used_without=used_without,
        advanced=advanced,
        panel=panel,
        short=short,
    )
    return _field(role, default)


def _told(help: str, used_with: str, used_without: str) -> str:
    """Return the help of a field, which begins with the option that it needs or that it cannot stand beside."""
    if not (needed := used_with or used_without):
        return help
    begin = help[:1].lower() if help[1:2].islower() else help[:1]
    return f"{'With' if used_with else 'Without'} {_option(needed)}: {begin}{help[1:]}"


def runtime(help: str, *, default: object = MISSING, **more: Any) -> Any:
    """Declare a value that changes only where or how fast the work is done. It is not part of the recipe. Args: see `setting`."""
    return setting(help, default=default, kind="runtime", **more)


def _range(at_least: float | None, above: float | None, at_most: float | None, below: float | None) -> Range:
    return Range(at_least, above, MOST if at_most is None and below is None else at_most, below)


Precision = Literal["auto", "fp32", "bf16"]
"""Arithmetic of a model: `auto` is bf16 where it is faster."""


def check_precision(precision: str) -> None:
    """Raise ConfigError unless this is the name of a precision."""
    if precision not in get_args(Precision):
        raise ConfigError(f"{precision!r} is not a precision. Use auto, fp32 or bf16.")


DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")


def check_device(flag: str, value: str) -> None:
    """Check the spelling of a device, without importing torch. Raises ConfigError."""
    if not DEVICE.fullmatch(value):
        raise ConfigError(f"{flag} {value!r} is not a device. Use auto, cpu, cuda or cuda:N.")


def check_refresh_device(flag: str, value: str) -> None:
    """Check the spelling of a device that may be `elsewhere`. Raises ConfigError."""
    if value != "elsewhere":
        check_device(flag, value)


def roles(stage: type[Any]) -> dict[str, Role]:
    """Return {field name: role} in the order of declaration."""
    return {item.name: item.metadata[ROLE] for item in dataclasses.fields(stage)}


def hints(stage: type[Any]) -> Mapping[str, Any]:
    """Return {field name: type}, found out once for each class."""
    if stage not in _hints:
        _hints[stage] = typing.get_type_hints(stage)
    return _hints[stage]


_hints: dict[type[Any], Mapping[str, Any]] = {}


def flag_of(name: str) -> str:
    """Return the option of a field: `--max-wordpieces` for `max_wordpieces`."""
    return "--" + name.replace("_", "-")


def _option(needed: str) -> str:
    """Return the options of `used_with`: `--objective paper` of `objective=paper`."""
    return " or ".join(flag_of(field).replace("=", " ") for field in needed.split("|"))


def unused(flag: str, needed: str) -> ConfigError:
    """Return the error of an option that says nothing without another one."""
    return ConfigError(f"{flag} needs {needed}, without which it says nothing. Name {needed} too, or leave out {flag}.")


def unheeded(stage: type[Any], values: Mapping[str, Any]) -> Iterator[tuple[str, ConfigError]]:
    """Yield each field that says nothing beside the others and has another value than its default, with the error of it.

    values: the values of all fields.
    """

    known = roles(stage)

    def given(field: str) -> bool:
        name, _, value = field.partition("=")
        role = known[name]
        from_workspace = role.name == "reads" and not (role.optional or (role.replaced_by and role.replaced_by(values)))
        return str(values[name]) == value if value else from_workspace or bool(values[name])

    for item in dataclasses.fields(stage):
        role, flag = known[item.name], flag_of(item.name)
        if values[item.name] == item.default:
            continue
        if role.used_with and not any(map(given, role.used_with.split("|"))):
            yield item.name, unused(flag, _option(role.used_with))
        elif role.used_without and given(role.used_without):
            yield (
                item.name,
                ConfigError(f"{flag} says nothing beside {flag_of(role.used_without)}. Leave out one of them."),
            )


def heeded(stage: type[Any], values: Mapping[str, Any], named: Collection[str]) -> dict[str, Any]:
    """Return these values without those that say nothing beside the others and that nobody named.

    values: those of some fields; the others have their defaults. named: fields that the user named himself.
    """
    silent = {name for name, _ in unheeded(stage, completed(stage, values))} - set(named)
    return {name: value for name, value in values.items() if name not in silent}


def completed(stage: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all fields: these, the defaults of the others, and None where there is no default."""
    defaults = {item.name: item.default for item in dataclasses.fields(stage)}
    return {name: None if default is MISSING else default for name, default in defaults.items()} | dict(values)
