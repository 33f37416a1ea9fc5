"""Settings: values that a user gives, each declared once with its help and its range.

    class ChunkSettings(Settings):
        "How documents are cut."
        max_wordpieces: int = setting("Longest block in wordpieces.", default=288, at_least=32)

The command line, pipeline files, the recipe and the reference page follow from the declaration. A stage inherits its
settings, and hands itself to the library function that takes them. So no value is listed twice.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast, dataclass_transform

from realmctl.pipeline.fields import ROLE, argument, flag_of, hints, output, reads, roles, runtime, setting, source
from realmctl.pipeline.values import typed
from realmctl.registry import class_at, offered


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(reads, source, setting, runtime, argument, output)
)
class Settings:
    """Base of all settings. A subclass becomes a frozen dataclass with keyword-only fields.

    Raises:
        ConfigError: A value has another type than its field, or lies outside the field's range.
    """

    def __init_subclass__(cls) -> None:
        _take_nearest_declarations(cls)
        dataclass(frozen=True, kw_only=True)(cls)
        for item in dataclasses.fields(cls):  # type: ignore[arg-type]
            if ROLE not in item.metadata:
                raise TypeError(
                    f"{cls.__name__}.{item.name} must be declared by reads(), source(), setting() or runtime(), in a command also by argument() or output()"
                )

    def __post_init__(self) -> None:
        for name, value in self.checked({name: getattr(self, name) for name in roles(type(self))}).items():
            object.__setattr__(self, name, value)

    @classmethod
    def checked(cls, values: Mapping[str, object]) -> dict[str, Any]:
        """Return these values as the types of their fields have them. Inputs stay as they are.

        Raises:
            ConfigError: A value has another type than its field, or lies outside the field's range.
        """
        types, known, found = hints(cls), roles(cls), dict(values)
        for name, value in values.items():
            if known[name].name != "reads":
                found[name] = typed(types[name], value, flag_of(name))
                known[name].check_value(found[name], flag_of(name))
        return found

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """Take the fields that are among these values, such as the settings of an artifact. The others have their defaults."""
        return cls(**{name: values[name] for name in roles(cls) if name in values})


def _take_nearest_declarations(cls: type[Settings]) -> None:
    """Give a class of several bases each field as the nearest base declares it, as Python does for methods.

    A dataclass takes the whole fields of its first base, so that what this one inherits would hide what another one overrides.
    """
    bases = [base for base in cls.__mro__[1:] if dataclasses.is_dataclass(base)]
    for name in dict.fromkeys(name for base in bases for name in roles(base)):
        declaring = next(base for base in cls.__mro__ if name in inspect.get_annotations(base))
        taken = next(base for base in bases if name in roles(base))
        if declaring is cls or roles(taken)[name] is roles(declaring)[name]:
            continue
        (item,) = (item for item in dataclasses.fields(declaring) if item.name == name)
        setattr(cls, name, dataclasses.field(default=item.default, metadata=item.metadata, kw_only=True))
        cls.__annotations__ = {**inspect.get_annotations(cls), name: hints(declaring)[name]}


S = TypeVar("S", bound=Settings)


def extended(command: str) -> Callable[[type[S]], type[S]]:
    """Decorate the settings of a command, or a stage, with the options that rooms add to it (group `realmctl.options.COMMAND`).

    What a room adds is a subclass of the settings that the class itself inherits. It declares further fields, and overrides methods for
    them. Its settings name their default as `left_out_at`, so that without the room the recipe is the same.
    """

    def with_options(own: type[S]) -> type[S]:
        added: list[Any] = [class_at(where, Settings) for where in offered(f"realmctl.options.{command}").values()]
        if not added:
            return own
        named = {name: getattr(own, name) for name in ("__doc__", "__module__", "__qualname__")}
        return cast(type[S], types.new_class(own.__name__, (*added, own), exec_body=lambda body: body.update(named)))

    return with_options
