"""Compare scores with those of other runs and with floors, print the table, and fail where they are shown below."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from realmctl.artifacts import Artifact, Origin, open_artifact
from realmctl.artifacts.series import readable_versions
from realmctl.errors import ConfigError, InputError, MismatchError, QualityError
from realmctl.extras.comparison.paired import EQUAL, FEWEST, Paired, paired
from realmctl.log import say, warn
from realmctl.pipeline.choosing import resolve
from realmctl.pipeline.comparing import aligned
from realmctl.questions.per_query import PER_QUERY

NAMED = ("query", "text", "collection")
"""Fields of a line that are no measures."""
ASKED = ("questions", "qrels", "answer_field", "regex_answers", "without_same_id", "scorer", "limit", "blocks", "among")
"""Inputs and settings that say what is asked and what is right. Those that both runs have must be the same."""
FREE = {"scores": ("blocks",), "ranking-scores": ("blocks",)}
"""Of some kinds those that may differ: questions may be asked of other blocks, and cloze recall is of its blocks alone."""
SHOWN = 5
"""Queries that are named of those that lost most and won most."""
LONGEST = 80

Query = tuple[str, str]
"""Collection, empty where there is one, and id."""


@dataclass(frozen=True)
class QueryMeasures:
    """The measures of each query, and the texts of those whose text is known."""

    values: Mapping[Query, Mapping[str, float]]
    texts: Mapping[Query, str]

    @property
    def names(self) -> set[str]:
        """Names of the measures."""
        return {name for values in self.values.values() for name in values}

    def told(self, query: Query) -> str:
        """What a query is called: collection, id and text, not too long."""
        text = self.texts.get(query, "")
        short = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        return " ".join(filter(None, (*query, f'"{short}"' if text else "")))


@dataclass(frozen=True)
class _Beside:
    """A measure of this run beside that of a baseline."""

    baseline: Path
    measure: str
    found: Paired


def standing(path: Path, own: Collection[str]) -> Path:
    """The version that a baseline stands for; itself for a version or a file.

    Of a series that is not pinned that is the newest whose recipe is none of `own`: what was the newest before this run made or found its
    own. Without another one it is that of this run.
    """
    if not path.is_dir():
        return path
    if not (newest := open_artifact(path)).named_as_newest:
        return newest.path
    return next((each.path for each in readable_versions(path) if each.recipe not in own), newest.path)


def scores_at(path: Path, kind: str, own: Origin | None = None) -> QueryMeasures:
    """The scores of the version at `path`.

    Raises:
        InputError: There are none, or they have no scores of single queries.
        MismatchError: They are of another kind, or cannot be compared with what is made from `own`.
    """
    other = resolve(path, (kind,), "--baseline")
    mine, theirs = ({**each.settings, **each.inputs} for each in (own or other.manifest, other.manifest))
    for name in (each for each in ASKED if each not in FREE.get(kind, ())):
        if mine.get(name) != theirs.get(name):
            raise MismatchError(
                f"--baseline {path} was measured with other {name.replace('_', ' ')} than this run, so the two cannot be compared. Measure "
                "it anew with the same, or name other scores."
            )
    return _read(other)


def judge(
    made: Artifact,
    read: Iterable[Artifact],
    baselines: Sequence[Path],
    floors: Mapping[str, float],
    headline: Sequence[str],
    measured_alike: Callable[[Path], Mapping[str, Mapping[str, float]] | None],
    command: str,
) -> None:
    """Compare the scores `made` with floors and baselines, and print what was found.

    Args:
        made: The scores.
        read: What they were made from.
        baselines: Where those of other runs are.
        floors: {measure: least value}. Baselines are judged by these measures too, and without them by the first of the headline.
        headline: Patterns of the names of the measures that are shown, the most important first.
        measured_alike: Returns {query: measures} of what is no scores but can be measured alike, such as a ranking; None for anything else.
        command: What messages begin with.

    Raises:
        ConfigError: A measure is unknown.
        InputError: A baseline is missing, or has no scores of single queries.
        MismatchError: A baseline is of other queries, or of another kind.
        QualityError: A measure lies below its floor, or is shown to be below a baseline.
    """
    numbers = [name for name, value in made.metrics.items() if _is_number(value)]
    if unknown := [name for name in floors if name not in numbers]:
        raise ConfigError(f"--floor: {unknown[0]!r} is not measured by {made}. Name one of {', '.join(numbers)}.")
    failures = [
        f"{name} is {made.metrics[name]:.4f}, below its floor of {least:g}"
        for name, least in floors.items()
        if made.metrics[name] < least
    ]
    if baselines:
        own = _read(made)
        known = [name for name in numbers if name in own.names]
        names = list(dict.fromkeys(name for pattern in headline for name in known if fnmatchcase(name, pattern)))
        gates = [name for name in floors if name in own.names] or names[:1]
        of_this_run = {each.recipe: each.path.resolve() for each in (made, *read)}
        paths = dict.fromkeys(standing(path, of_this_run) for path in baselines)
        bases = {path: _base(made, path, own, measured_alike(path)) for path in paths}
        if same := [path for path in paths if path.resolve() in of_this_run.values()]:
            warn(
                f"--baseline {same[0]} is of this run itself, so it cannot show a loss. Name another version of its series"
            )
        found = list[_Beside]()
        for path, base in bases.items():
            if lacking := [name for name in gates if name not in base.names]:
                raise ConfigError(
                    f"--baseline {path} does not measure {lacking[0]}. Name by --floor a measure that both have, or measure it anew."
                )
            shared = [name for name in dict.fromkeys([*gates, *names]) if name in base.names]
            found += [_Beside(path, name, _paired(own, base, name)) for name in shared]
        told = [_extremes(own, base, gates[0], path if len(bases) > 1 else None) for path, base in bases.items()]
        say("\n".join(filter(None, [f"{command}: {made.path} beside others", _table(found), *told])))
        failures += [
            f"{one.measure} is shown below {one.baseline}, by {one.found.difference:.4f} {_interval(one.found)}"
            for one in found
            if one.measure in gates and one.found.shown_below
        ]
    if failures:
        failed = QualityError(f"{'; '.join(failures)}. The scores are kept in {made.path}.")
        failed.made = made
        raise failed


def _base(
    made: Artifact, path: Path, own: QueryMeasures, alike: Mapping[str, Mapping[str, float]] | None
) -> QueryMeasures:
    """The scores of another run, which was measured alike now, or is an artifact. Errors: as of `judge`."""
    base = (
        scores_at(path, made.kind, made.manifest)
        if alike is None
        else QueryMeasures({("", query): alike[query] for query in alike}, {})
    )
    _require_same(own, base, path)
    return base


def _require_same(own: QueryMeasures, base: QueryMeasures, path: Path) -> None:
    one, two = own.values.keys(), base.values.keys()
    other = [query for query in own.texts.keys() & base.texts.keys() if own.texts[query] != base.texts[query]]
    if one != two or other:
        example = min(one ^ two or other)
        where = own if example in one else base
        raise MismatchError(
            f"--baseline {path} has {len(two):,} queries and this run {len(one):,}, of which {len(one & two) - len(other):,} are the same: "
            f"{where.told(example)} is of one alone. Measure both over the same queries."
        )


def _read(scores: Artifact) -> QueryMeasures:
    """Read per-query.jsonl. Raises InputError where it is missing or malformed."""
    if not scores.has(PER_QUERY):
        raise InputError(
            f"{scores} has no scores of single queries ({PER_QUERY}), so it cannot be compared query by query. Measure it anew."
        )
    path, found = scores.file(PER_QUERY), QueryMeasures(values := {}, texts := {})
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                query = str(record.get("collection", "")), str(record["query"])
                measures = {name: value for name, value in record.items() if name not in NAMED}
                if query in values or not all(map(_is_number, measures.values())):
                    raise ValueError("a query twice, or a measure that is no number")
            except (ValueError, KeyError, AttributeError, RecursionError) as error:
                raise InputError(f"{path}:{number}: not the measures of a query ({error}). Measure it anew.") from None
            values[query] = measures
            if text := record.get("text"):
                texts[query] = str(text)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _paired(own: QueryMeasures, base: QueryMeasures, measure: str) -> Paired:
    """The difference in a measure, over the queries that have it, by collection."""
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for query, one, two in _both(own, base, measure):
        pairs[query[0]].append((one, two))
    columns = [np.array(each, np.float64).T for each in pairs.values()]
    return paired([each[0] for each in columns], [each[1] for each in columns])


def _both(own: QueryMeasures, base: QueryMeasures, measure: str) -> list[tuple[Query, float, float]]:
    return [
        (query, values[measure], base.values[query][measure])
        for query, values in own.values.items()
        if measure in values and measure in base.values[query]
    ]


def _interval(found: Paired) -> str:
    if found.low is None or found.high is None:
        return f"none of fewer than {FEWEST}"
    return f"[{found.low:+.4f}, {found.high:+.4f}]"


def _table(found: Sequence[_Beside]) -> str:
    """A line for each baseline and measure."""
    lines = [
        ["baseline", "measure", "this run", "baseline's", "difference", "95 % interval", "wins", "losses", "equal"]
    ]
    for each in found:
        one = each.found
        values = f"{one.mean:.4f}", f"{one.base:.4f}", f"{one.difference:+.4f}", _interval(one)
        lines.append([str(each.baseline), each.measure, *values, *map(str, (one.wins, one.losses, one.equal))])
    return aligned(lines)


def _extremes(own: QueryMeasures, base: QueryMeasures, measure: str, beside: Path | None) -> str:
    """The queries that lost most and won most in a measure, and beside which baseline where there are several."""
    differences = sorted((one - two, query) for query, one, two in _both(own, base, measure))
    lost = [each for each in differences[:SHOWN] if each[0] < -EQUAL]
    won = [each for each in differences[::-1][:SHOWN] if each[0] > EQUAL]
    return "\n".join(
        f"{what} most in {measure}{f' beside {beside}' if beside else ''}: "
        + "; ".join(f"{own.told(query)} {by:+.3f}" for by, query in some)
        for what, some in (("lost", lost), ("won", won))
        if some
    )
