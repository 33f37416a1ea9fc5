"""A stage reads artifacts and makes one. Commands, skipping, manifests, pipelines and docs derive from its fields.

    class Embed(Stage):
        "Embed every block."                                  # the help text
        makes = "embeddings"
        blocks: Artifact = reads("blocks", help="...")        # an input artifact
        corpus: tuple[Path, ...] = source("...")              # something outside, known by its content
        dtype: str = setting("...", default="float32")        # changes the result: part of the recipe
        batch_size: int = knob("...", default=16)             # changes only the speed

A setting is a flag only in the stage that first decides it; later stages read it from their input.
"""

from __future__ import annotations

import dataclasses
import errno
import importlib
import pkgutil
import time
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, dataclass_transform

from realmctl import series
from realmctl.artifact import Artifact, Origin, Writer, lineage_of, open_artifact, verify, write_manifest
from realmctl.errors import ConfigError, MismatchError, ResourceError
from realmctl.log import say
from realmctl.sources import digest_of, localise

ROLE = "realmctl"


@dataclass(frozen=True)
class Role:
    """What a field is to its stage; kept in the field's metadata."""

    name: str  # reads, source, setting or knob
    help: str
    kinds: tuple[str, ...] = ()
    optional: bool = False
    unless: tuple[str, ...] = ()
    named: bool = False
    positional: bool = False
    literals: tuple[str, ...] = ()
    hub: bool = False


def _field(role: Role, default: Any) -> Any:
    return dataclasses.field(default=default, metadata={ROLE: role}, kw_only=True)


def reads(*kinds: str, help: str, optional: bool = False, unless: tuple[str, ...] = (), named: bool = False) -> Any:
    """An input artifact of one of `kinds`. An artifact that holds a part of that kind will do (a model for its index).

    On the command line it defaults to the workspace's. `optional`: only if there is one; `unless`: not when all of these
    fields are given; `named`: never, it must be named.
    """
    role = Role("reads", help, kinds, optional or named, unless, named)
    return _field(role, None if optional or named or unless else MISSING)


def source(help: str, *, default: Any = MISSING, positional: bool = False, literals: tuple[str, ...] = (), hub: bool = False) -> Any:
    """Something outside the artifacts, known by its content: a path, `-`, a literal such as `train:8000`, or a hub id."""
    return _field(Role("source", help, positional=positional, literals=literals, hub=hub), default)


def setting(help: str, *, default: Any = MISSING) -> Any:
    """A value that changes the result."""
    return _field(Role("setting", help), default)


def knob(help: str, *, default: Any = MISSING) -> Any:
    """A value that changes only the speed or the place of work."""
    return _field(Role("knob", help), default)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(reads, source, setting, knob))
class Stage:
    """Base of all stages. A subclass is made a frozen, keyword-only dataclass; break a convention and its import fails."""

    makes: ClassVar[str]
    version: ClassVar[int] = 1
    resumable: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if not cls.__doc__ or not isinstance(getattr(cls, "makes", None), str):
            raise TypeError(f"stage {cls.__name__} needs a docstring (its help) and `makes` (the kind of artifact)")
        dataclass(frozen=True, kw_only=True)(cls)
        for item in dataclasses.fields(cls):  # type: ignore[arg-type]
            if ROLE not in item.metadata:
                raise TypeError(f"{cls.__name__}.{item.name} must be declared by reads(), source(), setting() or knob()")

    def __post_init__(self) -> None:
        for name, role in roles(type(self)).items():
            value = getattr(self, name)
            if role.name == "reads" and value is not None:
                object.__setattr__(self, name, resolve(value, role.kinds))

    def check(self) -> None:
        """Refuse what cannot work, before any work. Raises ConfigError or MismatchError."""

    def estimate(self) -> dict[str, float]:
        """For `--dry-run`: what is known beforehand of `disk_bytes` and `memory_bytes`."""
        return {}

    def run(self, out: Writer) -> Mapping[str, Any]:
        """Fill `out`; the returned numbers become the manifest's metrics."""
        raise TypeError(f"stage {type(self).__name__} has no run()")

    @classmethod
    def command(cls) -> str:
        """Name of the stage and of its command: the file's name, with dashes."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    def inputs(self) -> dict[str, Artifact]:
        """The artifacts it was given, by field."""
        named = roles(type(self)).items()
        return {name: getattr(self, name) for name, role in named if role.name == "reads" and getattr(self, name) is not None}

    def origin(self) -> Origin:
        """What the result is made from. Sources are digested here."""
        settings = {n: _plain(getattr(self, n)) for n, role in roles(type(self)).items() if role.name == "setting"}
        sources = {n: digest_of(getattr(self, n), role.literals) for n, role in roles(type(self)).items() if role.name == "source"}
        artifacts = self.inputs()
        inputs = {name: artifact.content for name, artifact in artifacts.items()} | {n: d for n, d in sources.items() if d is not None}
        return Origin(self.makes, self.command(), self.version, settings, inputs, lineage_of(artifacts))

    def localised(self) -> typing.Self:
        """The same stage with its sources on this machine: stdin spooled to a file, hub ids fetched."""
        changes = {
            name: localise(getattr(self, name), role.literals, role.hub, flag_of(name))
            for name, role in roles(type(self)).items()
            if role.name == "source" and getattr(self, name) is not None
        }
        return dataclasses.replace(self, **changes) if changes else self

    def make(self, out: Path | str) -> Artifact:
        """The only driver: check, digest the inputs, return the version that has this recipe, else write and commit one."""
        stage = self.localised()
        stage.check()
        origin, out = stage.origin(), Path(out)
        if made := series.find(out, origin.recipe):
            say(f"{stage.command()}: nothing to do, {made.path} has this recipe")
            return made
        with series.locked(out):
            if made := series.find(out, origin.recipe):
                return made
            writer = series.begin(out, origin, stage.resumable)
            if series.finished(writer):
                return series.settle(writer)
            return stage._write(writer)

    def _write(self, writer: Writer) -> Artifact:
        start = time.monotonic()
        for artifact in self.inputs().values():
            verify(artifact)
        try:
            metrics = self.run(writer)
            write_manifest(writer.path, writer.origin, metrics, time.monotonic() - start)
            return series.commit(writer)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise ResourceError(f"no space left while writing {writer.path} ({error.strerror}). Free some and run the same command again.") from error
            raise
        finally:
            series.discard(writer, self.resumable)


def roles(stage: type[Stage]) -> dict[str, Role]:
    """{field name: role} in order of declaration."""
    return {item.name: item.metadata[ROLE] for item in dataclasses.fields(stage)}  # type: ignore[arg-type]


def flag_of(name: str) -> str:
    """The option of a field: `--max-wordpieces`."""
    return "--" + name.replace("_", "-")


def resolve(value: Artifact | Path | str, kinds: tuple[str, ...]) -> Artifact:
    """The artifact at `value`, or its part of one of these kinds. Raises MismatchError when it holds neither."""
    artifact = value if isinstance(value, Artifact) else open_artifact(value)
    if artifact.kind in kinds:
        return artifact
    for kind in kinds:
        if kind in artifact.manifest["parts"]:
            return artifact.part(kind)
    raise MismatchError(f"{artifact.path} is of kind {artifact.kind}, where {' or '.join(kinds)} is wanted. Name another artifact.")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def discover(package: ModuleType) -> dict[str, type[Stage]]:
    """{command: stage} of a package of stage files, each holding exactly one. Raises ConfigError otherwise."""
    found: dict[str, type[Stage]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        stages = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Stage) and v.__module__ == module.__name__]
        if len(stages) != 1:
            raise ConfigError(f"{module.__file__} holds {len(stages)} stages; a stage file holds exactly one.")
        found[stages[0].command()] = stages[0]
    return found
