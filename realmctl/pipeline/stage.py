"""A stage reads artifacts and makes one.

Its command, its manifest and its position in pipelines follow from its fields.

    class Embed(Stage):
        "Embed every block."                                  # the help text
        makes = "embeddings"
        headline = ("rows",)                                  # metrics that are printed at the end
        blocks: Artifact = reads("blocks", help="...")        # an input artifact
        corpus: tuple[Path, ...] = source("...")              # an input from outside; the recipe has its hash
        dtype: str = setting("...", default="float32")        # changes the result: part of the recipe
        batch_size: int = runtime("...", default=16)          # changes only the speed

A setting is a flag only in the stage that first decides it. Later stages read it from their input artifact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from realmctl.artifacts import (
    Artifact,
    Origin,
    Writer,
    lineage_of,
    series,
)
from realmctl.artifacts.disk import require_free_disk
from realmctl.artifacts.unfinished import letting_all_step_aside, unfinished_run
from realmctl.errors import ConfigError, as_realmctl_error
from realmctl.execution import processes
from realmctl.log import say
from realmctl.pipeline.choosing import Named, beside, choose
from realmctl.pipeline.fields import flag_of, roles, unheeded
from realmctl.pipeline.headline import headline_text
from realmctl.pipeline.making import make_version, write_version
from realmctl.pipeline.removed import refuse
from realmctl.pipeline.settings import Settings
from realmctl.pipeline.sources import (
    HUB_FILES,
    digest_of,
    localise,
    provenance_of,
    require_unchanged,
    spool_folder,
    states_of,
)
from realmctl.pipeline.together import Exchange, make_together
from realmctl.pipeline.trial import Trial
from realmctl.pipeline.trying import tried
from realmctl.registry import name_of


class Stage(Settings):
    """Base class of all stages. A subclass becomes a frozen dataclass with keyword-only fields.

    `class Common(Stage, abstract=True)` holds fields that several stages have in common, and is no stage itself.
    """

    makes: ClassVar[str]
    """The kind of artifact that the stage makes."""
    version: ClassVar[int] = 1
    """Part of the recipe. It increases when the same settings give another result than before."""
    headline: ClassVar[tuple[str, ...]] = ()
    """Names of the metrics that are printed at the end, the most important first. A name may end in `*`."""
    resumable: ClassVar[bool] = False
    """Whether an unfinished run can be continued."""
    takes_over: ClassVar[bool] = False
    """Whether a run takes over what an unfinished run of other inputs has done, so that such a run gives way to it."""
    grows_with: ClassVar[str] = ""
    """The field whose size decides how long the stage works: with twice the blocks, twice as long. Empty if its settings decide, as steps do."""
    counted: ClassVar[str] = ""
    """The unit of the progress that a trial measures; empty for any."""
    parallel: ClassVar[bool] = False
    """Whether torchrun may start the stage in several processes. The first process writes the artifact."""

    def __init_subclass__(cls, abstract: bool = False) -> None:
        if not cls.__doc__ or not (abstract or isinstance(getattr(cls, "makes", None), str)):
            raise TypeError(f"stage {cls.__name__} needs a docstring (its help) and `makes` (the kind of artifact)")
        super().__init_subclass__()

    def __new__(cls, *_: object, **values: object) -> Self:
        """Refuse a field that is gone by saying what to do. Raises ConfigError."""
        refuse(cls.command(), values)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        super().__post_init__()
        known = roles(type(self))
        values = {name: getattr(self, name) for name in known}
        for name, role in known.items():
            if role.ignored and values[name] is not None and role.replaced_by is not None and role.replaced_by(values):
                say(f"{self.command()}: {flag_of(name)} is not used with these options, so it is ignored")
                object.__setattr__(self, name, None)
        for _, error in unheeded(type(self), values):
            raise error
        for name, artifact in choose(self._named()).items():
            object.__setattr__(self, name, artifact)

    def check(self) -> None:
        """Check fields and inputs before any work. Raises ConfigError, InputError or MismatchError."""

    def find(self, out: Path, origin: Origin) -> Artifact | None:
        """Return the version of the series `out` that a run would make, None if there is none."""
        return series.find_version(out, origin, self.inputs().values())

    def unfinished(self, out: Path, origin: Origin) -> Path | None:
        """Return the unfinished run of the series `out` that this stage continues. Raises MismatchError for one of another recipe."""
        with letting_all_step_aside(self.takes_over):
            return unfinished_run(out, origin)

    def estimate(self) -> dict[str, float]:
        """Return what is known without work: `disk_bytes` and `memory_bytes`. The disk is checked before the work starts."""
        return {}

    @classmethod
    def is_brief(cls, values: Mapping[str, object]) -> bool:
        """Return whether the stage with these values takes so little beside what made its inputs that a time left may leave it out."""
        return False

    def preview(self) -> dict[str, str]:
        """Return what the sources hold, for `--dry-run`. A stage that reads files of several formats defines it."""
        return {}

    def trial(self) -> Trial:
        """Do a part of the work without writing an artifact, and return how long all of it takes.

        The stage is run until its progress tells. One whose first part does not tell of the rest defines another way.

        Raises:
            NotTried: No trial can tell it.
        """
        return tried(self.run, self.origin(), self.counted)

    @property
    def may_take_days(self) -> bool:
        """Whether the command tries the stage before it starts, to say how long it takes if that is more than a day."""
        return False

    def shorter(self, trial: Trial) -> str:
        """Return sentences with options with which the stage takes less, if it has some."""
        return ""

    def shrunk(self, folder: Path) -> tuple[Self, float] | None:
        """Return the same stage with as little work as makes an artifact on which later stages can be tried.

        Args:
            folder: A new folder for the files that it reads instead of its sources.

        Returns:
            The stage, and how many times as much the whole one reads from outside; None where nothing small can be made.
        """
        return self, 1.0

    def run(self, out: Writer) -> Mapping[str, object]:
        """Write the files of the artifact to `out`. The returned numbers become the metrics of its manifest."""
        raise ConfigError(f"the stage {type(self).__module__}:{type(self).__name__} has no `run`. Define it there.")

    def print_summary(self, made: Artifact) -> None:
        """Print the headline of the artifact on stderr, whether it was made now or found."""
        if text := self.headline_text(made.metrics):
            say(f"{self.command()}: {text}")

    @classmethod
    def headline_text(cls, metrics: Mapping[str, object]) -> str:
        """Return the headline of an artifact with these metrics; the most important number comes first."""
        return headline_text(cls.headline, metrics)

    @classmethod
    def command(cls) -> str:
        """Return the name of the stage and of its command: the name of its file, with dashes."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    def inputs(self) -> dict[str, Artifact]:
        """Return {field: artifact} of the input artifacts that were given."""
        return {name: value for name, value in self._fields_with_role("reads").items() if value is not None}

    def origin(self) -> Origin:
        """Return what the artifact is made from. This reads all sources to hash them."""
        known, sources = roles(type(self)), self._fields_with_role("source")
        settings = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._fields_with_role("setting").items()
            if value != known[name].left_out_at
        }
        digests = {name: digest_of(value, known[name].literals, known[name].files) for name, value in sources.items()}
        files = {name: provenance_of(value, known[name].literals) for name, value in sources.items()}
        artifacts = self.inputs()
        inputs = {name: artifact.content for name, artifact in artifacts.items()}
        inputs |= {name: digest for name, digest in digests.items() if digest is not None}
        return Origin(
            self.makes,
            self.command(),
            self.version,
            settings,
            inputs,
            lineage_of(artifacts),
            sources={name: entries for name, entries in files.items() if entries},
        )

    def _named(self) -> dict[str, Named]:
        """Return the input artifacts as they were named, and where an index for a model is looked for: beside the blocks."""
        named, values = dict[str, Named](), {name: getattr(self, name) for name in roles(type(self))}
        for name, role in roles(type(self)).items():
            if role.name != "reads":
                continue
            model = values.get(role.instead_of) if role.instead_of else None
            if values[name] is None and model is not None and not (role.replaced_by and role.replaced_by(values)):
                named[name] = Named(beside(values["blocks"], "index"), role.kinds, flag_of(name), (role.instead_of,))
            elif values[name] is not None or getattr(type(self), name, dataclasses.MISSING) is not None:
                named[name] = Named(values[name], role.kinds, flag_of(name))
        return named

    def _fields_with_role(self, role: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name, its in roles(type(self)).items() if its.name == role}

    @contextmanager
    def localised(self) -> Iterator[Self]:
        """Yield the same stage with its sources on this machine. Hub ids are fetched, streams and addresses copied to temporary files."""
        with spool_folder() as spool:
            changes = {
                name: localise(
                    value,
                    role.literals,
                    role.hub,
                    name if role.positional else flag_of(name),
                    spool,
                    role.files or HUB_FILES,
                )
                for name, role in roles(type(self)).items()
                if role.name == "source" and (value := getattr(self, name)) is not None
            }
            yield dataclasses.replace(self, **changes)

    def make(self, out: Path | str) -> Artifact:
        """Return the artifact of this recipe: a version that exists in the series `out`, or a new one.

        Args:
            out: Folder of the series.

        Raises:
            ConfigError, InputError, MismatchError, LockedError, ResourceError: See the classes. `run` may raise others.
        """
        if processes.world_size() > 1 and not self.parallel:
            raise ConfigError(
                f"{self.command()} runs in one process, not in {processes.world_size()}. Start it without torchrun."
            )
        if processes.world_size() > 1 and (batch_size := getattr(self, "batch_size", 0)):
            processes.share(batch_size, "examples")
        return self.make_in(series.series_folder(out, self.makes))

    def make_in(self, where: Path) -> Artifact:
        """Do what `make` does in a series that no user could name, such as one in a temporary folder within another series."""
        try:
            with self.localised() as stage:
                stage.check()
                seen = stage._source_states()
                made = stage._made(where, stage.origin(), seen)
                stage.print_summary(made)
                return made
        except Exception as error:
            known = as_realmctl_error(error, where)
            if known is None or known is error:
                raise
            raise known from error

    def _source_states(self) -> dict[Path, tuple[int, int, int]]:
        known = roles(type(self))
        return {
            file: state
            for name, value in self._fields_with_role("source").items()
            for file, state in states_of(value, known[name].literals, known[name].files).items()
        }

    def _made(self, out: Path, origin: Origin, seen: Mapping[Path, object]) -> Artifact:
        def run_first(writer: Writer) -> Artifact:
            writer.check_sources = lambda: require_unchanged(seen, self._source_states(), out)
            return self.run_first(writer)

        if processes.world_size() > 1:
            with self.together() as exchange:
                return make_together(self, run_first, self.resumable, out, origin, exchange)
        with letting_all_step_aside(self.takes_over):
            return make_version(out, origin, run_first, find=self.find, resumable=self.resumable)

    def together(self) -> AbstractContextManager[Exchange]:
        """Return a context in which the processes of torchrun exchange JSON values. A stage with `parallel` defines it."""
        raise TypeError(f"stage {type(self).__name__} is parallel and has no together()")

    def run_first(self, writer: Writer) -> Artifact:
        """Run the stage, write the manifest and commit the artifact. For the first or only process."""

        def write(out: Writer) -> Mapping[str, Any]:
            require_free_disk(out.path, self.estimate().get("disk_bytes", 0), self.command())
            if isinstance(found := self.run(out), Mapping):
                return found
            torn = f"`run` of {name_of(type(self))} returns {type(found).__name__}"
            raise ConfigError(f"{torn}, and a stage returns its metrics, a mapping, {{}} for none. Correct it there.")

        return write_version(writer, write, self.inputs().values())
