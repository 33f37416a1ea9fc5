"""Settings: declared once with their ranges, and refused by their own flag, even where the artifact exists."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import typing

import pytest

from realmctl.cli import commands
from realmctl.cli.available_stages import available_stages
from realmctl.errors import ConfigError
from realmctl.pipeline import Settings, check_device, check_refresh_device, flag_of, hints, roles, setting
from stages.build_index import BuildIndex
from tests.faults.counting import count
from tests.fixtures.small_stages import Plain


class Cut(Settings):
    """How to cut."""

    length: int = setting("Length.", default=8, at_least=3, at_most=512)
    share: float | None = setting("Share.", default=None, above=0, below=1)


class CutAgain(Cut):
    """How to cut once more."""

    length: int = setting("Length.", default=16, at_least=3, at_most=512)
    times: int = setting("Times.", default=1, at_least=1)


def test_settings_are_values_of_their_types_within_their_ranges():
    assert Cut(length="9") == Cut(length=9, share=None)  # type: ignore[arg-type]
    for wrong in ({"length": 2}, {"length": 513}, {"share": 0}, {"share": 1}, {"length": "long"}):
        with pytest.raises(ConfigError, match=f"--{next(iter(wrong))}"):
            Cut(**wrong)


def test_inherited_settings_are_handed_on_whole():
    again = CutAgain(share=0.5)
    assert Cut.of(vars(again)) == Cut(length=16, share=0.5)
    assert Cut.of({"share": 0.5, "other": 3}) == Cut(share=0.5)
    assert list(roles(CutAgain)) == ["length", "share", "times"]


def test_a_field_must_be_declared():
    with pytest.raises(TypeError, match="undeclared"):

        class Wrong(Settings):
            """Wrong."""

            undeclared: int = 3


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0", "cuda:15"])
def test_devices_that_are_spelled_right(device):
    check_device("--device", device)
    check_refresh_device("--refresh-device", device)


@pytest.mark.parametrize("device", ["gpu", "", "cuda:", "cuda:x", "CPU", "elsewhere", "cuda:0 "])
def test_devices_that_are_not(device):
    with pytest.raises(ConfigError, match="--device"):
        check_device("--device", device)


def test_a_refresher_may_run_elsewhere():
    check_refresh_device("--refresh-device", "elsewhere")
    with pytest.raises(ConfigError, match="--refresh-device 'gpu'"):
        check_refresh_device("--refresh-device", "gpu")


NUMBERS = [
    (name, field)
    for name, stage in available_stages().items()
    for field, hint in hints(stage).items()
    if field in roles(stage)
    and roles(stage)[field].name in ("setting", "runtime")
    and {int, float} & {hint, *typing.get_args(hint)}
]


@pytest.mark.parametrize(("name", "field"), NUMBERS)
def test_every_number_is_refused_outside_its_range_and_taken_inside(name, field):
    stage = available_stages()[name]
    role, hint = roles(stage)[field], hints(stage)[field]
    small = 1 if int in {hint, *typing.get_args(hint)} else 1e-9
    limits = role.range
    inside = [limit for limit in (limits.at_least, limits.at_most) if limit is not None]
    inside += [limits.above + small] if limits.above is not None else []
    inside += [limits.below - small] if limits.below is not None else []
    outside = [limit for limit in (limits.above, limits.below) if limit is not None]
    outside += [limits.at_least - small] if limits.at_least is not None else []
    outside += [limits.at_most + small] if limits.at_most is not None else []
    assert limits.at_least is not None or limits.above is not None, "a number without a lower limit"
    assert limits.at_most is not None or limits.below is not None, "a number without an upper limit"
    several = typing.get_origin(hint) is tuple
    for value in inside:
        role.check_value((value,) if several else value, flag_of(field))
    beyond = [*outside, -math.inf, math.inf, 1e300, -(10**18), *([10**18] if field != "seed" else [])]
    for value in beyond:
        with pytest.raises(ConfigError, match=flag_of(field)):
            role.check_value((value,) if several else value, flag_of(field))
    count("numbers at and beyond the ends of the options of stages", len(inside) + len(beyond))


def test_a_wrong_runtime_option_is_refused_though_the_artifact_exists(tmp_path):
    Plain().make(tmp_path / "plain")
    with pytest.raises(ConfigError, match="--workers -3"):
        Plain(workers=-3).make(tmp_path / "plain")


@pytest.mark.parametrize("seed", [2**63, 2**70, "1e300", str(2**64), -(2**63) - 1])
def test_numbers_that_no_library_takes(seed):
    with pytest.raises(ConfigError, match="--limit"):
        Plain(limit=seed)
    assert Plain(limit=str(2**63 - 1)).limit == 2**63 - 1  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, 5, "", [], object()])
def test_an_input_that_is_no_artifact_is_refused(value):
    with pytest.raises(ConfigError, match="--embeddings"):
        BuildIndex(embeddings=value)


def test_every_training_stage_computes_its_batch_in_parts_by_one_name():
    training = [stage for stage in available_stages().values() if {"steps", "batch_size"} <= roles(stage).keys()]
    assert {"IctInit", "Finetune"} <= {stage.__name__ for stage in training}
    for stage in training:
        assert roles(stage)["micro_batch"].name == "runtime", stage
        assert not {name for name in roles(stage) if "chunk" in name}, stage


COMMANDS = [
    (name, parameter.name, info)
    for name in (module.name for module in pkgutil.iter_modules(commands.__path__))
    for function in vars(importlib.import_module(f"{commands.__name__}.{name}")).values()
    if inspect.isfunction(function) and function.__module__ == f"{commands.__name__}.{name}"
    for parameter in inspect.signature(function, eval_str=True).parameters.values()
    for hint, *infos in [typing.get_args(parameter.annotation) or [None]]
    if any(kind in (int, float) for kind in (hint, *typing.get_args(hint)))
    for info in infos
    if name != "import_" or parameter.name == "workers"  # the encoder decides about the others
]


@pytest.mark.parametrize(
    ("command", "name", "info"), COMMANDS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_number_of_another_command_has_a_range(command, name, info):
    assert info.min is not None and info.max is not None and info.min < info.max <= 10**13


def test_of_several_bases_the_nearest_declaration_counts():
    """What one room inherits does not hide what another one overrides."""

    class Base(Settings):
        size: int | None = setting("Size.", default=1)
        other: int = setting("Other.", default=1)

    class Plain(Base):
        more: int = setting("More.", default=1)

    class Changed(Base):
        size: int | None = setting("Another size.", default=None, at_least=5)

    class Both(Plain, Changed):
        pass

    class Again(Both):
        size: int | None = setting("Size again.", default=7)

    assert (Both().size, Both().other, Both().more, Again().size) == (None, 1, 1, 7)
    with pytest.raises(ConfigError, match="--size 4 must be"):
        Both(size=4)
