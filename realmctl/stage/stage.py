"""A stage reads artifacts and makes one; commands, skipping, manifests and pipelines derive from its fields.

    class Embed(Stage):
        "Embed every block."                                  # the help text
        makes = "embeddings"
        blocks: Artifact = reads("blocks", help="...")        # an input artifact
        corpus: tuple[Path, ...] = source("...")              # something outside, known by its content
        dtype: str = setting("...", default="float32")        # changes the result: part of the recipe
        batch_size: int = runtime("...", default=16)             # changes only the speed

A setting is a flag only in the stage that first decides it; later stages read it from their input.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, dataclass_transform

from realmctl.artifacts import (
    Artifact,
    Origin,
    Writer,
    known_versions,
    lineage_of,
    open_artifact,
    series,
    unfinished,
    verify,
    write_manifest,
)
from realmctl.errors import ConfigError, MismatchError, explained
from realmctl.execution import processes
from realmctl.log import say
from realmctl.stage.fields import ROLE, Role, flag_of, hints, reads, roles, runtime, setting, source
from realmctl.stage.sources import digest_of, localise
from realmctl.stage.values import typed


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(reads, source, setting, runtime))
class Stage:
    """Base of all stages. A subclass becomes a frozen, keyword-only dataclass, or an import error."""

    makes: ClassVar[str]
    version: ClassVar[int] = 1
    resumable: ClassVar[bool] = False
    parallel: ClassVar[bool] = False
    """Whether torchrun may start several processes of it; the first one writes."""

    def __init_subclass__(cls) -> None:
        if not cls.__doc__ or not isinstance(getattr(cls, "makes", None), str):
            raise TypeError(f"stage {cls.__name__} needs a docstring (its help) and `makes` (the kind of artifact)")
        dataclass(frozen=True, kw_only=True)(cls)
        known_versions.register_stage(cls.command(), cls.version)
        for item in dataclasses.fields(cls):  # type: ignore[arg-type]
            if ROLE not in item.metadata:
                raise TypeError(
                    f"{cls.__name__}.{item.name} must be declared by reads(), source(), setting() or runtime()"
                )

    def __post_init__(self) -> None:
        for name, role in roles(type(self)).items():
            value = getattr(self, name)
            if role.name != "reads":
                value = typed(hints(type(self))[name], value, flag_of(name))
                role.check_choice(value, flag_of(name))
            elif value is not None:
                value = resolve(value, role.kinds)
            object.__setattr__(self, name, value)

    def check(self) -> None:
        """Refuse what cannot work, before any work. Raises ConfigError or MismatchError."""

    def estimate(self) -> dict[str, float]:
        """For `--dry-run`: what is known beforehand of `disk_bytes` and `memory_bytes`."""
        return {}

    def run(self, out: Writer) -> Mapping[str, Any]:
        """Fill `out`; the returned numbers become the manifest's metrics."""
        raise TypeError(f"stage {type(self).__name__} has no run()")

    def print_summary(self, made: Artifact) -> None:
        """Say on stderr what was asked to be shown of the result, made now or found."""

    @classmethod
    def command(cls) -> str:
        """Name of the stage and of its command: the file's name, with dashes."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    def inputs(self) -> dict[str, Artifact]:
        """The artifacts it was given, by field."""
        return {name: value for name, value in self._of("reads").items() if value is not None}

    def origin(self) -> Origin:
        """What the result is made from. Sources are digested here."""
        settings = {name: _plain(value) for name, value in self._of("setting").items() if not self._as_before(name)}
        literals = {name: role.literals for name, role in roles(type(self)).items()}
        sources = {name: digest_of(value, literals[name]) for name, value in self._of("source").items()}
        artifacts = self.inputs()
        inputs = {name: artifact.content for name, artifact in artifacts.items()}
        inputs |= {name: digest for name, digest in sources.items() if digest is not None}
        return Origin(self.makes, self.command(), self.version, settings, inputs, lineage_of(artifacts))

    def _as_before(self, name: str) -> bool:
        return roles(type(self))[name].later and getattr(self, name) == getattr(type(self), name)

    def _of(self, role: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name, its in roles(type(self)).items() if its.name == role}

    @contextmanager
    def localised(self) -> Iterator[typing.Self]:
        """The same stage with its sources on this machine: hub ids fetched, streams spooled meanwhile."""
        with tempfile.TemporaryDirectory(prefix="realmctl-") as spool:
            changes = {
                name: localise(value, role.literals, role.hub, _called(name, role), Path(spool))
                for name, role in roles(type(self)).items()
                if role.name == "source" and (value := getattr(self, name)) is not None
            }
            yield dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def make(self, out: Path | str) -> Artifact:
        """The only driver: check, digest inputs, return the version of this recipe or make and commit it.

        Raises ConfigError, InputError, MismatchError, LockedError, ResourceError, and what `run` raises.
        """
        if processes.world_size() > 1 and not self.parallel:
            raise ConfigError(
                f"{self.command()} works in one process, not in {processes.world_size()}. Start it without torchrun."
            )
        where = series.series_folder(out, self.makes)
        try:
            with self.localised() as stage:
                stage.check()
                made = stage._made(where, stage.origin())
                stage.print_summary(made)
                return made
        except Exception as error:
            known = explained(error, where)
            if known is None or known is error:
                raise
            raise known from error

    def _made(self, out: Path, origin: Origin) -> Artifact:
        if made := series.find_version(out, origin.recipe):
            say(f"{self.command()}: nothing to do, {made.path} has this recipe")
            return made
        if not processes.is_first():
            return self._run_as_other_process(out, origin)
        with series.locked(out):
            series.commit_finished_runs(out)
            if made := series.find_version(out, origin.recipe):
                return made
            return self._write(series.start_or_resume(out, origin, self.resumable))

    def _run_as_other_process(self, out: Path, origin: Origin) -> Artifact:
        """Work with the first process and keep nothing; what it made, once that is there."""
        with tempfile.TemporaryDirectory(prefix="realmctl-") as folder:
            self.run(unfinished.UnpublishedWriter(Path(folder), origin, series=out))
        while not (made := series.find_version(out, origin.recipe)):
            time.sleep(0.1)  # torchrun ends this process when the first one fails
        return made

    def _write(self, writer: Writer) -> Artifact:
        start = time.monotonic()
        try:
            for artifact in self.inputs().values():
                verify(artifact)
            metrics = {**writer.metrics, **self.run(writer)}
            seconds = time.monotonic() - start
            write_manifest(writer.path, writer.origin, metrics, seconds)
            made = series.commit(writer.path)
        finally:
            unfinished.remove_failed_run(writer)
        say(f"{self.command()}: made {made.path} in {seconds:.1f} s")
        return made


def _called(name: str, role: Role) -> str:
    return name if role.positional else flag_of(name)


def resolve(value: Artifact | Path | str, kinds: tuple[str, ...]) -> Artifact:
    """The artifact at `value`, or its part of one of these kinds. Raises MismatchError if it is neither."""
    artifact = value if isinstance(value, Artifact) else open_artifact(value)
    if artifact.kind in kinds:
        return artifact
    parts = [artifact.part(kind) for kind in kinds if kind in artifact.manifest["parts"]]
    fitting = [part for part in parts if part.kind in kinds]
    if not fitting:
        raise MismatchError(
            f"{artifact.path} is of kind {artifact.kind}, where {' or '.join(kinds)} is wanted. Name another artifact."
        )
    return fitting[0]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
