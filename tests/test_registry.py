"""Parts by name: built-in names, entry points, and errors that name the package at fault."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import FunctionType

import pytest

from realmctl import registry
from realmctl.cli import available_stages, order
from realmctl.corpus.blocks import Cutter
from realmctl.corpus.formats.format import Format
from realmctl.corpus.settings import CUTTERS, FORMAT_NAMES
from realmctl.errors import ConfigError, ResourceError
from realmctl.execution.shards import EXECUTORS, Cluster
from realmctl.index.index_type import IndexType
from realmctl.index.names import INDEX_TYPES
from realmctl.models.families.family import Family
from realmctl.models.families.known import FAMILIES
from realmctl.models.towers.poolings import poolings_of
from realmctl.pipeline import presets
from realmctl.registry import Registry
from realmctl.retrieval.answering.answerer import Answerer
from realmctl.retrieval.names import ANSWERERS, FILTERS, RANKERS, RERANKERS, SEARCHERS
from realmctl.retrieval.search.filters import BlockFilter
from realmctl.retrieval.search.methods import Ranker
from realmctl.retrieval.search.reranking import Reranker
from realmctl.retrieval.search.searcher import Searcher
from realmctl.spans.masking import Masking
from realmctl.spans.salient import Tagger
from realmctl.spans.settings import MASKINGS, TAGGERS
from realmctl.training.candidate_source import CandidateSource
from realmctl.training.losses import RetrieverLoss
from realmctl.training.names import CANDIDATE_SOURCES, HEADS, PROJECTIONS, READERS, REFRESHES, RETRIEVER_LOSSES
from realmctl.training.readers import PretrainReader
from realmctl.training.refresh.kinds import LeadingRefresh
from realmctl.training.starts.fitted import FittedHead, FittedProjection
from realmctl.version import __version__

GROUP = "realmctl.tests"
ROOT = Path(__file__).parents[1]


@pytest.fixture
def installed(monkeypatch) -> Iterator[list[EntryPoint]]:
    """The entry points that are there; add to the list before the first use."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: [point for point in found if point.group == group])
    registry.points.cache_clear()
    yield found
    registry.points.cache_clear()


def errors_by_name(**built_in: str) -> Registry:
    return Registry("error", group=GROUP, core=built_in)


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_names_of_realmctl_come_first_and_nothing_is_imported_for_them(installed):
    installed += [point("b", "no_such_module:B"), point("a", "no_such_module:A")]
    assert errors_by_name(z="no_such_module:Z").names() == ["z", "a", "b"]


def test_a_name_is_loaded_when_it_is_used(installed):
    installed.append(point("input", "realmctl.errors:InputError"))
    found = errors_by_name(config="realmctl.errors:ConfigError")
    assert found.load("config", Exception) is ConfigError
    assert found.load("input", Exception).__name__ == "InputError"


def test_an_unknown_name_is_refused_with_the_known_ones(installed):
    installed.append(point("b", "x:B"))
    with pytest.raises(ConfigError, match=r"'c'.*a, b"):
        errors_by_name(a="x:A").load("c", Exception)


def test_a_name_in_use_cannot_be_taken(installed):
    installed.append(point("config", "realmctl.errors:InputError"))
    found = errors_by_name(config="realmctl.errors:ConfigError")
    assert found.names() == ["config"]
    with pytest.raises(ConfigError, match=r"'config'.*realmctl.errors:InputError"):
        found.load("config", Exception)
    installed.append(point("twice", "a:A"))
    installed.append(point("twice", "b:B"))
    registry.points.cache_clear()
    with pytest.raises(ConfigError, match=r"'twice'.*a:A.*b:B"):
        found.load("twice", Exception)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:X", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("realmctl.errors:Nothing", "AttributeError: .*Nothing"),
    ],
)
def test_a_plug_in_that_cannot_be_imported_is_named(installed, value, reason):
    installed.append(point("x", value))
    with pytest.raises(ResourceError, match=f"'x'.*{reason}"):
        errors_by_name().load("x", Exception)


@pytest.mark.parametrize("value", ["realmctl.registry:Registry", "realmctl.registry:load"])
def test_what_is_no_part_of_its_kind_is_refused(installed, value):
    installed.append(point("x", value))
    with pytest.raises(ResourceError, match=r"builtins.Exception"):
        errors_by_name().load("x", Exception)


def test_no_two_rooms_offer_one_name_and_each_name_stands_for_something():
    groups = {group for offers in registry.rooms().values() for group in offers}
    for group in groups:
        names = [name for offers in registry.rooms().values() for name in offers.get(group, {})]
        assert len(names) == len(set(names)), group
        for name, where in registry.offered(group).items():
            named = where in order.GROUPS if group == order.GROUP else registry.object_at(where) is not None
            assert named, name


@pytest.fixture
def rooms(monkeypatch, tmp_path):
    """A package of rooms that this test writes, in place of extras and lab."""
    available_stages.available_stages()  # stages and commands take the options of rooms when they are imported
    for where in available_stages.other_commands().values():
        registry.object_at(where)
    folder = tmp_path / "rooms_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "ROOMS", ("rooms_of_a_test", "no_such_rooms"))
    monkeypatch.setattr(registry, "GROUPS", (*registry.GROUPS, GROUP.removeprefix("realmctl.")))
    for cached in (registry.rooms, registry.offered):
        cached.cache_clear()
    yield folder
    for cached in (registry.rooms, registry.offered):
        cached.cache_clear()
    for name in [name for name in sys.modules if name.startswith("rooms_of_a_test")]:
        del sys.modules[name]


OFFER = "OFFERS = {'%s': {'%s': 'realmctl.errors:InputError'}}"


def test_a_room_is_a_folder_or_a_file_and_may_be_missing(rooms):
    (rooms / "folder").mkdir()
    (rooms / "folder" / "__init__.py").write_text(OFFER % (GROUP, "by-folder"))
    (rooms / "file.py").write_text((OFFER % (GROUP, "by-file")).replace("OFFERS", "OFFERS: dict"))
    assert Registry("error", group=GROUP, core={}).names() == ["by-file", "by-folder"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "it has no OFFERS"),
        ("OFFERS: dict", "it has no OFFERS"),
        ("OFFERS = {", "never closed"),
        ("OFFERS = dict(a=1)", "malformed"),
        ("OFFERS = ['a']", "no attribute"),
        ("OFFERS = {'realmctl.stage': {'a': 'b:c'}}", "nothing reads the group 'realmctl.stage'"),
        ("OFFERS = {'realmctl.stages': {'a': 1}}", "is not {name: text}"),
    ],
)
def test_a_room_that_does_not_say_what_it_adds_is_refused(rooms, source, says):
    (rooms / "torn.py").write_text(source)
    with pytest.raises(ResourceError, match=f"rooms_of_a_test.torn .*{says}.*Correct the room, or delete it"):
        registry.offered(GROUP)


def test_a_room_takes_no_name_of_the_core_or_of_another_room(rooms):
    (rooms / "one.py").write_text(OFFER % (GROUP, "x"))
    with pytest.raises(ConfigError, match=r"'x' of .* is offered by"):
        errors_by_name(x="realmctl.errors:InputError").load("x", Exception)
    (rooms / "two.py").write_text(OFFER % (GROUP, "x"))
    for cached in (registry.rooms, registry.offered):
        cached.cache_clear()
    with pytest.raises(ConfigError, match=r"'x' of .* is offered by rooms_of_a_test.two and"):
        errors_by_name().names()


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("realmctl.stages", "tag"),
        ("realmctl.commands", "show"),
        ("realmctl.commands", "tag"),
        ("realmctl.presets", "realm"),
    ],
)
def test_a_room_takes_no_name_of_a_command_or_preset(rooms, group, name):
    (rooms / "one.py").write_text((OFFER % (group, name)).replace("realmctl.errors:InputError", "stages.chunk:Chunk"))
    with pytest.raises(ConfigError, match=f"'{name}' of realmctl.[a-z]+ is offered by"):
        presets.presets.__wrapped__()
        available_stages.available_stages()


def test_what_a_room_names_and_does_not_have_is_told(monkeypatch):
    monkeypatch.setattr(registry, "room_of", lambda module: "realmctl.lab.ghost")
    for where in ("realmctl.no_such_module:X", "realmctl.errors:NoSuchClass"):
        with pytest.raises(ResourceError, match=f"realmctl.lab.ghost offers {where}, which cannot be imported"):
            registry.object_at(where)


def test_something_reads_each_group():
    core = "".join(
        path.read_text() for path in Path(registry.__file__).parent.rglob("*.py") if path.name != "__init__.py"
    )
    read = {f'"realmctl.{group}"' for group in registry.GROUPS if not group.startswith("options.")}
    assert [group for group in read if group not in core] == []
    extended = re.findall(
        r'extended\("([a-z-]+)"\)', core + "".join(path.read_text() for path in (ROOT / "stages").glob("*.py"))
    )
    assert {f"options.{command}" for command in extended} == {*registry.GROUPS} - {group[10:-1] for group in read}


def told_with_rooms(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command whose rooms are those of this test. Stages take their options when they are imported."""
    code = (
        "from realmctl import registry\n"
        "registry.ROOMS = ('rooms_of_a_test', 'no_such_rooms')\n"
        "from realmctl.cli.app import main\n"
        "main()"
    )
    path = os.pathsep.join(map(str, (folder.parent, ROOT)))
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )
    return done.returncode, done.stdout, " ".join(done.stderr.split())


def test_the_version_is_printed_where_a_room_is_broken(rooms):
    (rooms / "torn.py").write_text("OFFERS = {")
    for option in ("--version", "-V"):
        assert told_with_rooms(rooms, option) == (0, f"realmctl {__version__}\n", "")
    code, _, told = told_with_rooms(rooms, "ls")
    assert code == ResourceError.exit_code and "rooms_of_a_test.torn" in told


def test_an_unknown_command_may_be_one_of_a_package_that_is_not_here(rooms):
    code, _, told = told_with_rooms(rooms, "serve")
    assert code == ConfigError.exit_code and "lacks no_such_rooms and the commands there" in told
    assert "score" not in told


SEAMS: list[tuple[Registry, type]] = [
    (CUTTERS, Cutter),
    (TAGGERS, Tagger),
    (MASKINGS, Masking),
    (EXECUTORS, Cluster),
    (FAMILIES, Family),
    (INDEX_TYPES, IndexType),
    (READERS, PretrainReader),
    (RETRIEVER_LOSSES, RetrieverLoss),
    (CANDIDATE_SOURCES, CandidateSource),
    (REFRESHES, LeadingRefresh),
    (HEADS, FittedHead),
    (PROJECTIONS, FittedProjection),
    (SEARCHERS, Searcher),
    (RANKERS, Ranker),
    (RERANKERS, Reranker),
    (ANSWERERS, Answerer),
    (FILTERS, BlockFilter),
]


@pytest.mark.parametrize(("seam", "kind"), SEAMS, ids=lambda each: getattr(each, "group", ""))
def test_a_class_that_cannot_be_called_as_its_kind_is_refused_before_it_is_used(monkeypatch, seam, kind):
    """An abstract class, one whose methods take nothing, and one whose making takes more; what realmctl itself offers is none of these."""
    for name in seam.names():
        assert seam.load(name, kind)
    monkeypatch.setattr(registry, "points", lambda group: (EntryPoint("torn", "my_package:Torn", group),))
    methods = [
        name for each in kind.__mro__[:-1] for name, value in vars(each).items() if isinstance(value, FunctionType)
    ]
    public = [name for name in methods if name == "__call__" or not name.startswith("_")]
    whole = dict.fromkeys(getattr(kind, "__abstractmethods__", ()), lambda *given, **named: None)
    offered = [object(), object, *([kind] if whole else [])]
    offered += [type("Torn", (kind,), {**whole, name: lambda: None}) for name in public]
    if not any(isinstance(value, classmethod) for value in vars(kind).values()):
        offered.append(type("Torn", (kind,), {**whole, "__init__": lambda self, one, two, three, four, five: None}))
    for each in offered:
        monkeypatch.setattr(registry, "load", lambda point, each=each: each)
        with pytest.raises(
            ResourceError, match=r"^the package my_package:Torn offers .*Correct it there, or uninstall that package\.$"
        ):
            seam.load("torn", kind)


@pytest.mark.parametrize(
    ("offer", "says"),
    [
        (Format("torn", lambda path, settings: []), r"has a read that takes \(path, settings\) and is called with \(CorpusFile\)"),
        (Format("torn", lambda file: [], looks=lambda file: True), r"has a looks that takes \(file\) and is called with \(CorpusFile, bytes\)"),
        (Format("torn", "read.py"), "has a read that is no function and is called with"),
        (Format, "is not a realmctl.corpus.formats.format.Format"),
        ({"another": Format("torn", list)}, "is not a realmctl.corpus.formats.format.Format"),
    ],
)  # fmt: skip
def test_a_format_that_cannot_be_called_is_refused(monkeypatch, offer, says):
    monkeypatch.setattr(registry, "points", lambda group: (EntryPoint("torn", "my_package:TORN", group),))
    monkeypatch.setattr(registry, "load", lambda point: offer)
    with pytest.raises(ResourceError, match=says):
        FORMAT_NAMES.instance("torn", Format)


def test_a_pooling_that_cannot_be_called_is_refused(monkeypatch):
    monkeypatch.setattr(registry, "points", lambda group: (EntryPoint("torn", "my_package:torn", group),))
    monkeypatch.setattr(registry, "load", lambda point: lambda states: states)
    with pytest.raises(
        ResourceError, match=r"has a function that takes \(states\) and is called with \(state_BLH, pooled_BL\)"
    ):
        poolings_of("torn")


TORN = """
OFFERS = {"realmctl.taggers": {"torn": "rooms_of_a_test.one:Torn"}}
from realmctl.spans.salient import Tagger

class Torn(Tagger):
    def tag(self, blocks):
        return ["no spans"]
"""


def test_a_traceback_names_the_parts_of_rooms_that_were_used(rooms, chain):
    (rooms / "one.py").write_text(TORN)
    for more, says in ([], False), (["--tagger", "torn"], True):
        code, _, told = told_with_rooms(rooms, "tag", "--blocks", str(chain.blocks.path), "--max-masks", "9", *more)
        note = "This run used rooms_of_a_test.one:Torn: what one of them returns may be wrong."
        assert (code, told.endswith(note)) == (1 if says else 0, says), told


STAGE = """
from realmctl.pipeline import Command, Settings, Stage, setting

class Torn(Stage):
    "Does nothing."
    makes = "blocks"
    def run(self): ...

class Silent(Command):
    "Does nothing."
    def run(self): ...

class Other:
    "Is no stage."
"""


@pytest.mark.parametrize(
    ("group", "name", "where", "says"),
    [
        ("realmctl.stages", "torn", "rooms_of_a_test.one:Torn", "has a run that takes (self) and is called with (self, out)"),
        ("realmctl.stages", "torn", "rooms_of_a_test.one:Other", "is not a subclass of realmctl.pipeline.stage.Stage"),
        ("realmctl.stages", "torn", "rooms_of_a_test.one:Absent", "cannot be imported (AttributeError"),
        ("realmctl.stages", "torn", "no_such_module:Torn", "cannot be imported (ModuleNotFoundError"),
        ("realmctl.commands", "torn", "rooms_of_a_test.one:Silent", "has a run that takes (self) and is called with (self, show)"),
        ("realmctl.commands", "torn", "rooms_of_a_test.one:Torn", "is not a subclass of realmctl.pipeline.command.Command"),
        ("realmctl.options.tag", "torn", "rooms_of_a_test.one:Torn", "nothing reads the group 'realmctl.options.tag'"),
        ("realmctl.options.pretrain", "torn", "rooms_of_a_test.one:Other", "is not a subclass of realmctl.pipeline.settings.Settings"),
        ("realmctl.presets", "torn", "rooms_of_a_test.one:Other", "is not a"),
    ],
)  # fmt: skip
def test_a_room_that_offers_what_cannot_be_used_is_told_in_one_paragraph(rooms, group, name, where, says):
    (rooms / "one.py").write_text(f"OFFERS = {{{group!r}: {{{name!r}: {where!r}}}}}\n{STAGE}")
    code, _, told = told_with_rooms(
        rooms, "torn" if group in ("realmctl.stages", "realmctl.commands") else "pretrain", "--help"
    )
    assert code == ResourceError.exit_code and "Traceback" not in told
    assert told.startswith("error: the room rooms_of_a_test.one ") and says in told
    assert "delete" in told
