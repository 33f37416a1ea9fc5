"""Parts by name: built-in names, entry points, and errors that name the package at fault."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from realmctl import registry
from realmctl.cli import order
from realmctl.errors import ConfigError, ResourceError
from realmctl.registry import Registry

GROUP = "realmctl.tests"


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


def test_a_room_is_a_folder_or_a_file_and_may_be_missing(monkeypatch, tmp_path):
    rooms = tmp_path / "rooms_of_a_test"
    (rooms / "folder").mkdir(parents=True)
    (rooms / "__init__.py").touch()
    offer = "OFFERS = {'realmctl.tests': {'%s': 'realmctl.errors:InputError'}}"
    (rooms / "folder" / "__init__.py").write_text(offer % "by-folder")
    (rooms / "file.py").write_text(offer % "by-file")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "ROOMS", ("rooms_of_a_test", "no_such_rooms"))
    for cached in (registry.rooms, registry.offered):
        cached.cache_clear()
    try:
        assert Registry("error", group=GROUP, core={}).names() == ["by-file", "by-folder"]
    finally:
        for cached in (registry.rooms, registry.offered):
            cached.cache_clear()
