"""Parts by name: built-in names, entry points, and errors that name the package at fault."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from realmctl import registry
from realmctl.cli import available_stages, order
from realmctl.errors import ConfigError, ResourceError
from realmctl.pipeline import presets
from realmctl.registry import Registry
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
    assert [group for group in registry.GROUPS if f'"realmctl.{group}"' not in core] == []


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
