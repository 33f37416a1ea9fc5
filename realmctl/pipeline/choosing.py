"""Which versions are taken: the one rule for stages, `ask`, `fill-mask`, `serve` and Python.

A version stands for itself. A series stands for its pinned version, or else for its newest version that fits the others. If
the newest versions do not fit each other, older ones are tried: first of what was derived from blocks, then of the blocks,
then of what was trained. A model searches its own index while that is of the blocks; otherwise an index beside the blocks is
looked for. What is taken is said on stderr when it is not simply the newest.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from realmctl.artifacts import Artifact, open_artifact, vocabulary_of
from realmctl.artifacts.artifact import VERSION_NAME
from realmctl.artifacts.manifest import FORMER, is_artifact
from realmctl.artifacts.series import readable_versions
from realmctl.errors import ConfigError, MismatchError
from realmctl.log import say

DERIVED = ("index", "embeddings", "ranking", "datastore", "spans")
"""Kinds that are made of blocks, or of an encoder, and are tried last."""


@dataclass(frozen=True)
class Named:
    """One input as it was named.

    value: an artifact, or the path of a version or of a series.
    kinds: the kinds that are accepted, as the artifact's own or as that of a part.
    where: the flag, for messages.
    own_of: for an index: names of the models that have one of their own. While the first such index fits, it is searched,
        and None is chosen; `value` is then where another one is looked for, or None.
    """

    value: Artifact | Path | str | None
    kinds: tuple[str, ...]
    where: str = "input"
    own_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    """A version and what it says about the others: equal keys of two versions that fit have equal values.

    place: the version; None for a model's own index.
    claims: {kind: content} of the blocks that it is or was made of, and so on; and its vocabulary.
    vectors: the retriever whose vectors it searches, if it is a model or a retriever.
    own_index: the claims of the index inside a model.
    """

    place: Artifact | Path | None = None
    claims: Mapping[str, str] = field(default_factory=dict)
    vectors: str | None = None
    own_index: Mapping[str, str] | None = None

    @property
    def path(self) -> Path:
        assert self.place is not None
        return self.place.path if isinstance(self.place, Artifact) else self.place


def resolve(value: Artifact | Path | str, kinds: tuple[str, ...], where: str = "input") -> Artifact:
    """Return the artifact at `value`, or its part of one of these kinds.

    Args:
        value: An artifact, or the path of a version or of a series.
        kinds: The kinds that are accepted.
        where: The flag, for the message.

    Raises:
        ConfigError: The value is neither an artifact nor a path.
        InputError: There is no complete artifact at this path.
        MismatchError: The artifact is of another kind.
    """
    return _part(_opened(value, kinds, where), kinds)


def choose(named: Mapping[str, Named], *, blocks_first: bool = False) -> dict[str, Artifact | None]:
    """Return {name: artifact} of the newest versions that fit each other; None for an index that is the model's own.

    Args:
        named: What is asked for, by name.
        blocks_first: Go back to what was trained earlier before going back to older blocks, as for a search, where the newest documents count.

    Raises:
        ConfigError: A value is neither an artifact nor a path.
        InputError: There is no complete artifact at a path.
        MismatchError: An artifact is of another kind, or no versions fit each other.
    """
    newest = {name: None if one.own_of else _opened(one.value, one.kinds, one.where) for name, one in named.items()}
    free = {
        name
        for name, artifact in newest.items()
        if named[name].own_of
        or (
            (artifact is not None and artifact is not named[name].value and artifact.named_as_newest)
            and not name.startswith(FORMER)
        )
    }
    first = {name: _candidate(artifact, named[name]) for name, artifact in newest.items()}
    chosen = first
    if free and (clash := _clash(first, named)):
        order = sorted(
            (name for name in named if not name.startswith(FORMER)),
            key=lambda name: (not (blocks_first and named[name].kinds[0] == "blocks"), _rank(named[name])),
        )
        options = {name: [*_older(first[name], named[name])] if name in free else [first[name]] for name in order}
        found = _search(order, options, named, {})
        if found is None and clash in ("blocks", "retriever"):
            raise MismatchError(
                f"{_missing(first, named) or _why(clash)} No other versions fit each other either. Or name versions that do."
            )
        if found is not None:
            chosen = {**first, **found}
            _tell(first, chosen, named, clash)
            if _lacks_index(first, chosen, named, free) and (missing := _missing(first, named)):
                say(missing)
    artifacts: dict[str, Artifact | None] = {}
    for name, candidate in chosen.items():
        same = candidate is first[name]
        opened = newest[name] if same else open_artifact(candidate.path) if candidate.place is not None else None
        artifacts[name] = None if opened is None else _part(opened, named[name].kinds)
    return artifacts


def fitting(
    blocks: Artifact | Path | str | None,
    *,
    models: Mapping[str, Named] = MappingProxyType({}),
    retriever: Artifact | Path | str | None = None,
    index: Artifact | Path | str | None = None,
    indexes: Path | None = None,
    blocks_first: bool = False,
) -> dict[str, Artifact | None]:
    """Return the newest versions that fit each other for a search outside a stage, by name: `models`, `retriever`, `index` and `blocks`.

    Args:
        blocks: The blocks that are searched.
        models: Models that may have an index of their own, by name.
        retriever: A retriever that searches the index; None where the models do, or BM25.
        index: The index to search. None: the models' own as long as it is of the blocks, otherwise one of `indexes`; without models none.
        indexes: Where another index is looked for; by default the series `index` beside the blocks.
        blocks_first: See `choose`.

    Raises:
        ConfigError, InputError, MismatchError: See `choose`.
    """
    named = dict(models)
    if retriever is not None:
        named["retriever"] = Named(retriever, ("retriever",), "--retriever")
    if index is not None:
        named["index"] = Named(index, ("index",), "--index")
    elif models and (indexes or blocks):
        named["index"] = Named(indexes or beside(blocks or "", "index"), ("index",), "--index", tuple(models))
    named["blocks"] = Named(blocks, ("blocks",), "--blocks")
    return choose(named, blocks_first=blocks_first)


def beside(artifact: Artifact | Path | str, kind: str) -> Path:
    """Return the series of a kind beside that of an artifact or of the artifact that it is a part of: `w/index` for `w/model/v1`."""
    place = artifact.path if isinstance(artifact, Artifact) else Path(artifact)
    outermost = Path(os.path.normpath(place.absolute()))
    while is_artifact(outermost.parent):
        outermost = outermost.parent
    series = outermost.parent if VERSION_NAME.fullmatch(outermost.name) else outermost
    found = series.parent / kind
    return found if place.is_absolute() else Path(os.path.relpath(found))


def make_index_hint(blocks: Path, retriever: object) -> str:
    """Return the commands that make an index of these blocks with this retriever, beside the blocks."""
    where = [shlex.quote(str(one)) for one in (blocks, retriever)]
    workspace = beside(blocks, "index").parent
    named = "" if workspace == Path("artifacts") else f" --workspace {shlex.quote(str(workspace))}"
    return "`realmctl embed --blocks {} --retriever {}{}` and then `realmctl build-index{}`".format(
        *where, named, named
    )


def _opened(value: Artifact | Path | str | None, kinds: tuple[str, ...], where: str) -> Artifact:
    if not isinstance(value, Artifact | Path | str) or not str(value):
        raise ConfigError(
            f"{where}: {value!r} is not an artifact. Give an artifact of kind {' or '.join(kinds)}, or the path of one."
        )
    artifact = value if isinstance(value, Artifact) else open_artifact(value)
    _part(artifact, kinds, where)
    return artifact


def _part(artifact: Artifact, kinds: tuple[str, ...], where: str = "input") -> Artifact:
    if artifact.kind in kinds:
        return artifact
    parts = [artifact.part(kind) for kind in kinds if kind in artifact.manifest.parts]
    matching = [part for part in parts if part.kind in kinds]
    if not matching:
        raise MismatchError(
            f"{where} {artifact.path} is of kind {artifact.kind}, but {' or '.join(kinds)} is needed. Name another artifact."
        )
    return matching[0]


def _candidate(artifact: Artifact | None, named: Named, place: Path | None = None) -> _Candidate:
    """What an artifact says about the others. `place`: its path, where the artifact is not kept open."""
    if artifact is None:
        return _Candidate()
    used = _part(artifact, named.kinds)
    holder = open_artifact(used.path.parent) if is_artifact(used.path.parent) else artifact
    index = holder.part("index") if "index" in holder.manifest.parts else None
    claims = {"vocabulary": words} if (words := vocabulary_of(used)) else {}
    vectors = None
    match used.kind:
        case "blocks" | "encoder" | "reader":
            claims[used.kind] = used.content
        case "index" | "embeddings":
            claims |= _of(used, "blocks", "retriever")
        case "ranking":
            claims |= _of(used, "blocks")
        case "datastore":
            claims |= _of(used, "encoder", "reader")
        case "retriever":
            vectors = used.content if index is None else index.lineage.get("retriever")
        case "model" | "qa-model" if index is not None:
            vectors = index.lineage.get("retriever")
    own = _of(index, "blocks", "retriever") if index is not None and used is artifact else None
    return _Candidate(place or artifact, claims, vectors, own)


def _of(artifact: Artifact, *kinds: str) -> dict[str, str]:
    return {kind: artifact.lineage[kind] for kind in kinds if kind in artifact.lineage}


def _older(first: _Candidate, named: Named) -> Iterator[_Candidate]:
    """The candidates of a series, newest first; for a model's index, its own before those of the series."""
    yield first
    if isinstance(first.place, Artifact):
        series = first.place.path.parent
    elif named.value is None or not Path(str(named.value)).is_dir():
        return
    else:
        series = Path(str(named.value))
    for version in readable_versions(series):
        if first.place is None or version.path.name != first.path.name:
            try:
                yield _candidate(version, named, version.path)
            except MismatchError:  # a series of the user's own choice may hold other kinds
                continue


def _rank(named: Named) -> int:
    """What is trained is chosen first, then the blocks, then what was made of them."""
    return 2 if named.kinds[0] in DERIVED else 1 if named.kinds[0] == "blocks" else 0


def _search(
    order: list[str],
    options: Mapping[str, list[_Candidate]],
    named: Mapping[str, Named],
    taken: Mapping[str, _Candidate],
) -> dict[str, _Candidate] | None:
    """The first selection without a clash, in the order of the options."""
    if not order:
        return dict(taken)
    for candidate in options[order[0]]:
        now = {**taken, order[0]: candidate}
        if not _clash(now, named) and (found := _search(order[1:], options, named, now)) is not None:
            return found
    return None


def _clash(taken: Mapping[str, _Candidate], named: Mapping[str, Named]) -> str | None:
    """The first key on which versions disagree, such as `blocks`; None if they fit."""
    known: dict[str, str] = {}
    for claims in _claims(taken, named):
        for key, value in claims.items():
            if known.setdefault(key, value) != value:
                return key
    return None


def _claims(taken: Mapping[str, _Candidate], named: Mapping[str, Named]) -> Iterator[Mapping[str, str]]:
    paired = {model for one in named.values() for model in one.own_of}
    has_retriever = any(one.kinds[0] == "retriever" for one in named.values())
    has_index = any(one.kinds[0] in ("index", "embeddings") for one in named.values())
    for name, candidate in taken.items():
        if name.startswith(FORMER):
            continue
        yield candidate.claims
        if candidate.vectors and (
            has_index if named[name].kinds[0] == "retriever" else name in paired and not has_retriever
        ):
            yield {"retriever": candidate.vectors}
        if candidate.place is None:
            yield _own_index(taken, named[name])


def _own_index(taken: Mapping[str, _Candidate], index: Named) -> Mapping[str, str]:
    """The claims of the first index inside a model; none for models that search no vectors."""
    models = [taken[name] for name in index.own_of if name in taken]
    searching = any(model.vectors for model in models)
    return next((model.own_index for model in models if model.own_index), {"retriever": ""} if searching else {})


def _tell(
    first: Mapping[str, _Candidate], chosen: Mapping[str, _Candidate], named: Mapping[str, Named], clash: str
) -> None:
    """Say what is taken that is not simply the newest, and why."""
    for name, candidate in chosen.items():
        if candidate is first[name]:
            continue
        if first[name].place is not None:
            say(f"taking {candidate.path}, not {first[name].path}: {_why(clash)}")
        elif any(one.own_index for one in first.values()):
            say(f"taking {candidate.path}, because the index in {_trained(first)} is of other blocks")


def _why(clash: str) -> str:
    return f"the newest versions do not fit each other, they differ in their {clash}."


def _lacks_index(
    first: Mapping[str, _Candidate],
    chosen: Mapping[str, _Candidate],
    named: Mapping[str, Named],
    free: Collection[str],
) -> bool:
    """Whether older blocks or models are taken because no index fits the newest, and not because an index was named."""
    gone_back = any(_rank(named[name]) < 2 and candidate is not first[name] for name, candidate in chosen.items())
    return gone_back and all(name in free for name, one in named.items() if _rank(one) == 2)


def _missing(first: Mapping[str, _Candidate], named: Mapping[str, Named]) -> str:
    """Say that no index fits the newest blocks and models, and the commands that make one; empty if they differ in something else."""
    blocks = next((candidate for name, candidate in first.items() if named[name].kinds[0] == "blocks"), None)
    trained = _trained(first)
    if blocks is None or trained is None or _clash(first, named) not in ("blocks", "retriever"):
        return ""
    vectors = next(candidate.vectors for candidate in first.values() if candidate.vectors)
    hint = make_index_hint(blocks.path, _maker_of(vectors, trained))
    return f"{blocks.path} has no index made with the retriever of {trained}. To make one, run {hint}."


def _trained(first: Mapping[str, _Candidate]) -> Path | None:
    return next((candidate.path for candidate in first.values() if candidate.vectors), None)


def _maker_of(vectors: str, trained: Path) -> Path | str:
    """The model or retriever beside a qa-model that made these vectors; in words, if there is none."""
    workspace = trained.parent.parent
    for kind in ("model", "retriever"):
        for version in readable_versions(workspace / kind):
            if _candidate(version, Named(None, (kind,))).vectors == vectors:
                return version.path
    return "RETRIEVER"
