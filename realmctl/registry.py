"""Parts found by name: those of the core, those of the rooms beside it, and those that other packages offer through entry points.

A room is a folder or a file below `realmctl/extras` (what is optional for a user) or `realmctl/lab` (methods beside REALM). It says what it adds in
a constant, which has the form of entry points:

    OFFERS = {"realmctl.stages": {"spider-init": "realmctl.lab.spider.spider_init:SpiderInit"}}

The core imports no room. Without a room its names are gone, and nothing else is. A name stands for `module:attribute`, and nothing of a room is
imported before its name is used: `OFFERS` is written out, and read from the source. An entry point cannot take a name that is in use: the name is then refused for all packages, with
an error that lists them.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.abc import InspectLoader
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, Signature
from types import FunctionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from realmctl.errors import ConfigError, ResourceError

T = TypeVar("T")
MAX_REASON = 600
used = dict[str, None]()
"""The classes of rooms and packages that this process has loaded by name: what the core gets from one of them may be the cause of a bug."""
ROOMS = ("realmctl.extras", "realmctl.lab")
"""The packages whose folders and files are rooms. Either may be deleted."""
GROUPS = (
    *("stages", "commands", "groups", "presets", "formats", "families", "indexes", "searchers", "rankers", "filters"),
    *("rerankers", "answerers", "readers", "retriever_losses", "objectives", "candidate_sources", "maskings"),
    *("refreshes", "taggers", "cutters", "heads", "projections", "poolings", "encoder_sources", "executors"),
    *("trackers", "remotes", "options.adapt", "options.ask", "options.build-index", "options.eval-beir"),
    *("options.eval-cloze", "options.eval-em", "options.eval-run", "options.eval-utility", "options.mlm-init"),
    *("options.pretrain", "options.run", "options.training"),
)
"""The groups in which rooms may offer something, without `realmctl.`."""


@cache
def rooms() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """{room: what it offers}, such as `realmctl.lab.spider`, for the rooms that are there.

    Raises ResourceError for a room without `OFFERS` that is written out, or one with a group that nothing reads.
    """
    return {room: _offers_of(room) for package in ROOMS for room in _rooms_of(package)}


def _rooms_of(package: str) -> Iterator[str]:
    try:
        folder = importlib.import_module(package)
    except ModuleNotFoundError:
        return
    yield from sorted(f"{package}.{info.name}" for info in pkgutil.iter_modules(folder.__path__))


def absent() -> tuple[str, ...]:
    """Return the packages of `ROOMS` that this installation does not have."""
    return tuple(package for package in ROOMS if importlib.util.find_spec(package) is None)


def _offers_of(room: str) -> Mapping[str, Mapping[str, str]]:
    """The constant `OFFERS` in the source of a room, which is not run."""
    try:
        spec = importlib.util.find_spec(room)
        source = spec.loader.get_source(room) if spec and isinstance(spec.loader, InspectLoader) else None
        offers = ast.literal_eval(_value_of("OFFERS", ast.parse(source or "")))
        for group, names in offers.items():
            if group.removeprefix("realmctl.") not in GROUPS:
                raise ValueError(f"nothing reads the group {group!r}; one of realmctl: {', '.join(GROUPS)}")
            if not all(isinstance(text, str) for pair in names.items() for text in pair):
                raise ValueError(f"{group} is not {{name: text}}")
        return dict(offers)
    except (SyntaxError, ValueError, AttributeError) as error:
        raise _spoilt(room, "does not say what it adds", error) from error


def _value_of(name: str, tree: ast.Module) -> ast.expr:
    """What a module assigns to a name, `name = ...` or `name: type = ...`. Raises ValueError where it does not."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return node.value
    raise ValueError(f"it has no {name}, a dictionary that is written out")


def _spoilt(room: str, what: str, error: BaseException) -> ResourceError:
    """The error for a room that cannot be used."""
    return ResourceError(f"the room {room} {what} ({_reason(error)}). Correct the room, or delete it.")


@cache
def offered(group: str) -> Mapping[str, str]:
    """{name: "module:attribute"} of what the rooms offer in a group. Raises ConfigError where two rooms offer one name."""
    found: dict[str, str] = {}
    for room, offers in rooms().items():
        found = joined(group, found, offers.get(group, {}), room)
    return found


def joined(group: str, known: Mapping[str, T], added: Mapping[str, T], room: str = "a room") -> dict[str, T]:
    """Return the names known so far with those that rooms add. Raises ConfigError where a name is known: it would mean another thing in silence."""
    for name in known.keys() & added.keys():
        raise ConfigError(
            f"{name!r} of {group} is offered by {room} and by realmctl or another room. Give it another name in OFFERS."
        )
    return {**known, **added}


def room_of(module: str) -> str:
    """Return the room that a module belongs to, such as `realmctl.lab.spider`; empty for the core and for other packages."""
    parts = module.split(".")
    return ".".join(parts[:3]) if len(parts) > 2 and ".".join(parts[:2]) in ROOMS else ""


def title_of(room: str) -> str:
    """Return the title of a room for help texts, such as `Lab: spider`."""
    package, name = room.split(".")[1:]
    return f"{package.title()}: {name.replace('_', ' ')}"


def object_at(where: str) -> object:
    """Import what "module:attribute" stands for. Raises ResourceError for a part of a room that cannot be imported."""
    module, _, attribute = where.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:
        if not (room := room_of(module) or _offering(where)):
            raise
        raise _spoilt(room, f"offers {where}, which cannot be imported", error) from error


def _offering(where: str) -> str:
    """The room that offers "module:attribute"; empty for the core."""
    offers = ((room, names.values()) for room, offers in rooms().items() for names in offers.values())
    return next((room for room, found in offers if where in found), "")


def class_at(where: str, base: type[T]) -> type[T]:
    """Import the subclass of `base` that "module:attribute" stands for. Raises ResourceError for a part of a room that cannot be used as one."""
    return cast(type[T], require_fit(object_at(where), where, class_misfit(object_at(where), base)))


def require_fit(found: object, where: str, misfit: str, offer: EntryPoint | None = None) -> object:
    """Return what a room or a package offers, unless a `misfit` says why it cannot be used. Raises ResourceError."""
    if not misfit:
        return found
    if offer:
        owner, remedy = f"the package {owner_of(offer)}", "uninstall that package"
    else:
        room = room_of(where.partition(":")[0]) or _offering(where)
        owner, remedy = (f"the room {room}", "delete the room") if room else ("realmctl", "install realmctl again")
    raise ResourceError(f"{owner} offers {where}, which cannot be used: it {misfit}. Correct it there, or {remedy}.")


def class_misfit(found: object, base: type) -> str:
    """Return what keeps something from being used as a subclass of `base`, as the predicate of a sentence; empty if nothing does.

    It has all methods of `base`, and they take what those of `base` are called with. So does the making of an object, where `base` has no class method
    or fields for it.
    """
    if not (isinstance(found, type) and issubclass(found, base)):
        return f"is not a subclass of {name_of(base)}"
    if lacking := getattr(found, "__abstractmethods__", None):
        return f"lacks {', '.join(sorted(lacking))} of {name_of(base)}"
    declared = {name: value for each in base.__mro__[:-1] for name, value in vars(each).items()}
    called = [name for name, value in declared.items() if isinstance(value, FunctionType | classmethod | staticmethod)]
    called = [name for name in called if name == "__call__" or not name.startswith("_")]
    if not dataclasses.is_dataclass(base) and not any(isinstance(vars(base).get(each), classmethod) for each in called):
        called.append("__init__")
    refusals = (_refusal(name, getattr(found, name), inspect.signature(getattr(base, name))) for name in called)
    return next(filter(None, refusals), "")


def object_misfit(found: object, kind: type, like: Callable[..., object] | None = None) -> str:
    """Return what keeps something from being used as a `kind`, as `class_misfit`. The functions in its fields take what their types say.

    like: what it is called as, if it is a function.
    """
    if not isinstance(found, kind):
        return f"is not a {name_of(kind)}"
    if like:
        return _refusal("function", found, inspect.signature(like))
    for name, hint in get_type_hints(kind).items() if dataclasses.is_dataclass(kind) else ():
        for call in (each for each in (hint, *get_args(hint)) if get_origin(each) is get_origin(Callable[[], None])):
            given = [Parameter(taken.__name__, Parameter.POSITIONAL_ONLY) for taken in get_args(call)[0]]
            if (set_to := getattr(found, name)) and (why := _refusal(name, set_to, Signature(given))):
                return why
    return ""


def _refusal(name: str, found: Any, called: Signature) -> str:
    """What keeps a function from being called in a certain way; empty if nothing does."""
    given = [
        each
        for each in called.parameters.values()
        if each.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    by_name = {each.name: each for each in given if each.kind is Parameter.KEYWORD_ONLY}
    takes = ""
    try:
        taken = inspect.signature(found)
        takes = f" takes ({', '.join(taken.parameters)}) and"
        taken.bind(*(each for each in given if each.name not in by_name), **by_name)
    except TypeError:  # it cannot be called, or not so
        return f"has a {name} that{takes or ' is no function and'} is called with ({', '.join(each.name for each in given)})"
    except ValueError:  # a function that is not written in Python may not say what it takes
        pass
    return ""


def name_of(kind: type) -> str:
    """The module and the name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


class Registry:
    """Classes, or objects of one class, by name: those of the core, what rooms offer in `group`, and its entry points.

    The values of `core` have the form "module:attribute". `what` describes the names in errors, such as `searcher`.
    """

    def __init__(self, what: str, *, group: str, core: Mapping[str, str]) -> None:
        self.what, self.group, self.core = what, group, core

    @property
    def built_in(self) -> Mapping[str, str]:
        """{name: "module:attribute"} of realmctl: its core and its rooms."""
        return joined(self.group, self.core, offered(self.group))

    def names(self) -> list[str]:
        """Every name, those of realmctl first. Nothing is imported."""
        return [*self.built_in, *sorted({point.name for point in points(self.group)} - set(self.built_in))]

    def load(self, name: str, base: type[T]) -> type[T]:
        """The class with this name, a subclass of `base`. Raises: see `instance`."""
        found, where, offer = self._found(name)
        if where not in self.core.values():
            used[where] = None
        return cast(type[T], require_fit(found, where, class_misfit(found, base), offer))

    def instance(self, name: str, kind: type[T], like: Callable[..., object] | None = None) -> T:
        """The object with this name. What "module:attribute" stands for may be a mapping that has it by its name. like: see `object_misfit`.

        Raises:
            ConfigError: the name is unknown, or two packages offer it.
            ResourceError: the package that offers it cannot be imported, or offers what cannot be used.
        """
        found, where, offer = self._found(name)
        found = found.get(name) if isinstance(found, Mapping) else found
        return cast(T, require_fit(found, where, object_misfit(found, kind, like), offer))

    def _found(self, name: str) -> tuple[Any, str, EntryPoint | None]:
        """What has this name, where it stands, and the entry point of a package that offers it."""
        if offer := self._offer(name):
            return load(offer), offer.value, offer
        where = self.built_in[name]
        return object_at(where), where, None

    def _offer(self, name: str) -> EntryPoint | None:
        """The entry point with this name; None for a name of realmctl."""
        offers = [point for point in points(self.group) if point.name == name]
        owners = [*(["realmctl"] if name in self.built_in else []), *map(owner_of, offers)]
        if not owners:
            raise ConfigError(f"there is no {self.what} {name!r}. Use one of: {', '.join(self.names())}.")
        if len(owners) > 1:
            raise clash(self.what, name, owners)
        return offers[0] if offers else None


@cache
def points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group in all installed packages, by name."""
    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, point.value)))


def owner_of(point: EntryPoint) -> str:
    """The distribution that an entry point comes from, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def load(point: EntryPoint) -> object:
    """Return the object that an entry point names.

    Raises ResourceError naming the distribution when it cannot be imported.
    """
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise not_imported(point.name, owner_of(point), point.value, error) from error


def not_imported(name: str, owner: str, where: str, error: BaseException) -> ResourceError:
    """The error for a plug-in that cannot be imported."""
    return ResourceError(
        f"the plug-in {name!r} of the package {owner} ({where}) cannot be imported ({_reason(error)}). "
        "Repair, upgrade or uninstall that package."
    )


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_REASON]


def clash(what: str, name: str, owners: list[str]) -> ConfigError:
    """The error for a name that several packages offer."""
    return ConfigError(f"the {what} {name!r} is offered by {' and by '.join(owners)}. Uninstall all but one of them.")
