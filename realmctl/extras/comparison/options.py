"""`--baseline` and `--floor`: what they add to the stages and commands that measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from realmctl.artifacts import Artifact, Origin, open_artifact
from realmctl.errors import ConfigError, InputError
from realmctl.pipeline import InWorkspace, Settings, Show, Stage, runtime


def floors_of(texts: Sequence[str], flag: str = "--floor") -> dict[str, float]:
    """Return {measure: least value} of texts such as `nDCG@10=.62`; one text may hold several with blanks between. Raises ConfigError."""
    found: dict[str, float] = {}
    for text in (each for several in texts for each in several.split() or [several]):
        name, equals, value = text.rpartition("=")  # the name of a measure may have an equals sign
        try:
            least = float(value)
        except ValueError:
            least = math.nan
        if not (name and equals and math.isfinite(least)):
            raise ConfigError(f"{flag} {text!r} is not MEASURE=NUMBER. Write it as 'nDCG@10=.62'.")
        if name in found:
            raise ConfigError(f"{flag} names {name} twice. Leave one of them out.")
        found[name] = least
    return found


def _check_floors(flag: str, texts: tuple[str, ...]) -> None:
    floors_of(texts, flag)


def _check_baselines(flag: str, paths: tuple[Path, ...]) -> None:
    """Refuse what is not there when the options or the pipeline file are read, before any stage runs."""
    for path in paths:
        if not path.exists():
            raise InputError(
                f"{flag} {path}: there is nothing (looked from {Path.cwd()}). Name a version of scores, such as artifacts/scores/v1. "
                "Where none is kept yet, run once without it, and keep the scores that are made."
            )


class _Comparing(Settings):
    """What this run is compared with. None of it changes the scores."""

    baseline: tuple[Path, ...] = runtime(
        "Scores of another run over the same queries, such as artifacts/scores/v1; artifacts/scores is the newest version there before this run. Of eval-run also a ranking or a TREC run. Prints differences with 95 % intervals. Repeatable. Exit code 6 if this run is shown below one.",
        default=(),
        check=_check_baselines,
    )
    floor: tuple[str, ...] = runtime(
        "Least value of a measure, by its name as it is printed, such as 'nDCG@10=.62'. Below it the exit code is 6. The scores are kept.",
        default=(),
        check=_check_floors,
    )

    def _check_early(self) -> None:
        """Refuse a floor of an unknown measure before anything is measured."""
        measured: Callable[[], Sequence[str]] = getattr(self, "measure_names", tuple)
        names = measured()
        for measure in floors_of(self.floor):
            if measure not in names:
                raise ConfigError(f"--floor: {measure!r} is not measured. Name one of {', '.join(names)}.")

    def _check_scores(self, kind: str, own: Origin | None = None, read: Iterable[Artifact] = ()) -> None:
        """Refuse baselines that cannot be compared, before anything is measured. Errors: as of `judging.scores_at`."""
        from realmctl.extras.comparison.judging import scores_at, standing

        recipes = {each.recipe for each in (own, *read) if each}
        alike = getattr(self, "also_compared", ())
        for path in (standing(each, recipes) for each in self.baseline):
            if not alike or (path.is_dir() and open_artifact(path).kind not in alike):
                scores_at(path, kind, own)

    def _judge(
        self,
        made: Artifact,
        read: Iterable[Artifact],
        headline: Sequence[str],
        other: Callable[[Path], Any],
        command: str,
    ) -> None:
        if not (self.baseline or self.floor):
            return
        from realmctl.extras.comparison.judging import judge

        judge(made, read, self.baseline, floors_of(self.floor), headline, other, command)


class ComparedStage(_Comparing, Stage, abstract=True):
    """A stage that measures, and is compared once its scores are there, whether they were made now or found."""

    def check(self) -> None:
        super().check()
        self._check_early()

    def find(self, out: Path, origin: Origin) -> Artifact | None:
        """Find the version as any stage does. Every run and dry run does it first, so baselines are looked at here, where the recipe is known."""
        if self.baseline:
            self._check_scores(self.makes, origin, self.inputs().values())
        return super().find(out, origin)

    def print_summary(self, made: Artifact) -> None:
        super().print_summary(made)
        other: Callable[[Path], Mapping[str, Any] | None] = getattr(super(), "measured_alike", lambda path: None)
        self._judge(made, self.inputs().values(), self.headline, other, self.command())


class ComparedCommand(_Comparing, InWorkspace):
    """A command whose scores are an artifact, which it hands to `print_summary`."""

    makes: ClassVar[str]
    """The kind of the scores."""

    def run(self, show: Show) -> None:
        self._check_early()
        if self.baseline:
            self._check_scores(self.makes)
        super().run(show)

    def print_summary(self, made: Artifact) -> None:
        self._judge(made, (), ("*",), lambda path: None, made.manifest.stage)
