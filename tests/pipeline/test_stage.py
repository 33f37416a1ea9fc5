"""Stages: fields become recipes, inputs are resolved and verified, and nothing is made twice."""

from __future__ import annotations

import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from realmctl.artifacts import Origin, open_artifact, writing
from realmctl.errors import AccessError, ConfigError, InputError, MismatchError, ResourceError
from realmctl.pipeline import Stage, discovery, flag_of, roles, runtime, setting
from realmctl.pipeline.fields import heeded
from tests.fixtures.small_stages import Child, Model, Plain

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def plain(tmp_path):
    return Plain().make(tmp_path / "plain")


@pytest.fixture
def model(tmp_path, plain):
    return Model(child=Child(plain=plain).make(tmp_path / "child")).make(tmp_path / "model")


CHANGES: list[dict[str, Any]] = [
    {"text": "other"},
    {"tags": ("a",)},
    {"tags": ("a", "b")},
    {"tags": ("b", "a")},
    {"rate": 0.25},
    {"kind_of": "long"},
    {"limit": 0},
    {"strict": False},
    {"maybe": False},
    {"maybe": True},
    {"vocabulary": "train:11"},
]


def test_every_setting_is_part_of_the_recipe_and_no_runtime_option_is():
    recipes = {Plain(**change).origin().recipe for change in [{}, *CHANGES]}
    assert len(recipes) == len(CHANGES) + 1
    assert Plain(workers=7).origin().recipe == Plain().origin().recipe
    settings = {name for name, role in roles(Plain).items() if role.name == "setting"}
    assert settings == set().union(*CHANGES) - {"vocabulary"} == set(Plain().origin().settings)


class Weighed(Stage):
    """Text, and perhaps weights."""

    makes = "plain"
    weight: float = setting("Weight.", default=0.0)
    batch: int = setting("texts that are weighed together.", default=8, used_with="weight")
    order: Literal["given", "random"] = setting("Order.", default="given")
    seed: int = setting("Seed of the order.", default=0, used_with="order=random")
    steps: int = setting("Steps.", default=0)
    rounds: int = setting("Rounds over the texts.", default=1, used_without="steps")
    cache: float = runtime("Memory for weights or random texts.", default=0.0, used_with="weight|order=random")


def test_a_setting_that_says_nothing_is_refused_and_its_help_says_when_it_does():
    assert roles(Weighed)["batch"].help == "With --weight: texts that are weighed together."
    assert Weighed(weight=0.5, batch=4).batch == 4 and Weighed(batch=8) == Weighed()
    with pytest.raises(ConfigError, match="--batch needs --weight"):
        Weighed(batch=4)
    assert roles(Weighed)["seed"].help == "With --order random: seed of the order."
    assert roles(Weighed)["rounds"].help == "Without --steps: rounds over the texts."
    assert Weighed(order="random", seed=3, rounds=2, cache=1.0).seed == 3 and Weighed(weight=1.0, cache=1.0, steps=2)
    for silent, words in (
        ({"seed": 3}, "--seed needs --order random"),
        ({"steps": 2, "rounds": 2}, "--rounds .*--steps"),
        ({"cache": 1.0}, "--cache needs --weight or --order random"),
    ):
        with pytest.raises(ConfigError, match=words):
            Weighed(**silent)
        assert heeded(Weighed, silent, named=()) == {name: silent[name] for name in silent if name == "steps"}
        assert heeded(Weighed, silent, named=silent) == silent


def test_a_setting_of_a_later_release_leaves_finished_work_finished(tmp_path):
    """Also where its default is another value: what counts is the value at which the stage does what it did before."""

    class Later(Plain):
        """The same stage in a later release."""

        echo: int = setting("How often to repeat.", default=1, at_least=0, left_out_at=0)

        @classmethod
        def command(cls):
            return Plain.command()

    before = Plain().make(tmp_path / "plain")
    assert Later(echo=0).make(tmp_path / "plain").path == before.path
    changed = Later().make(tmp_path / "plain")
    assert changed.path != before.path and changed.settings == {**before.settings, "echo": 1}


def test_sources_count_by_content_and_order(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    (tmp_path / "copy of a").write_text("a")

    def recipe(*names: str) -> str:
        return Plain(corpus=tuple(tmp_path / name for name in names)).origin().recipe

    assert recipe("a") == recipe("copy of a")
    assert len({recipe("a"), recipe("b"), recipe("a", "b"), recipe("b", "a"), recipe()}) == 5


def test_a_moved_input_keeps_the_recipe_and_another_changes_it(tmp_path, plain):
    before = Child(plain=plain).origin()
    (tmp_path / "plain").rename(tmp_path / "moved")
    assert Child(plain=tmp_path / "moved").origin() == before
    assert Child(plain=Plain(text="x").make(tmp_path / "x")).origin().recipe != before.recipe


def test_two_results_of_one_recipe_are_told_apart(tmp_path, monkeypatch):
    one = Plain().make(tmp_path / "one")
    monkeypatch.setattr(Plain, "run", lambda self, out: {"n": out.file("text.txt").write_text("noise")})
    two = Plain().make(tmp_path / "two")
    assert one.recipe == two.recipe and one.content != two.content
    assert Child(plain=one).origin().recipe != Child(plain=two).origin().recipe


def test_the_same_recipe_is_made_once(tmp_path, monkeypatch):
    first = Plain().make(tmp_path / "plain")
    monkeypatch.setattr(Plain, "run", lambda *_: pytest.fail("made again"))
    assert Plain(workers=9).make(tmp_path / "plain").path == first.path


def test_a_part_will_do_where_its_kind_is_wanted(tmp_path, model):
    child = Child(plain=model, other=model).make(tmp_path / "of-part")
    part = model.part("plain")
    assert child.manifest.inputs == {"plain": part.content, "other": model.part("child").content}
    assert child.lineage["plain"] == part.content
    assert Child(plain=part, other=model.part("child")).origin().recipe == child.recipe


def test_what_is_of_another_kind_is_refused(tmp_path, plain):
    child = Child(plain=plain).make(tmp_path / "child")
    with pytest.raises(MismatchError, match=r"child.*plain"):
        Child(plain=child)
    with pytest.raises(InputError, match="does not exist"):
        Child(plain=tmp_path / "nothing")


def test_a_part_by_the_right_name_but_of_another_kind_is_refused(tmp_path):
    origin = Origin("model", "s", 1, {}, {})
    with writing(tmp_path / "model", origin) as out, writing(out.path / "plain", replace(origin, kind="other")) as part:
        part.file("text.txt").write_text("x")
    assert open_artifact(tmp_path / "model").part("plain").kind == "other"
    with pytest.raises(MismatchError, match=r"model.*plain"):
        Child(plain=tmp_path / "model")


def test_a_damaged_input_is_noticed_before_the_work(tmp_path, plain, monkeypatch):
    path = plain.file("text.txt")
    path.chmod(0o644)
    path.write_text("jello")
    monkeypatch.setattr(Child, "run", lambda *_: pytest.fail("worked on it"))
    with pytest.raises(InputError, match=r"text\.txt"):
        Child(plain=plain).make(tmp_path / "child")
    assert not list((tmp_path / "child").glob("v*"))


def test_check_comes_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match="--text forbidden"):
        Plain(text="forbidden").make(tmp_path / "plain")
    assert not (tmp_path / "plain").exists()


@pytest.mark.parametrize(
    ("raised", "known"),
    [
        (OSError(28, "No space left on device"), ResourceError),
        (MemoryError(), ResourceError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 byte"), ResourceError),
        (ModuleNotFoundError("x", name="hnswlib"), ResourceError),
        (PermissionError(13, "Permission denied", "/x"), AccessError),
        (ZeroDivisionError(), ZeroDivisionError),
    ],
)
def test_a_failing_run_leaves_nothing_and_says_what_it_was(tmp_path, monkeypatch, raised, known):
    def run(self, out):
        out.file("half").write_text("half")
        raise raised

    monkeypatch.setattr(Plain, "run", run)
    with pytest.raises(known):
        Plain().make(tmp_path / "plain")
    assert {path.name for path in (tmp_path / "plain").iterdir()} == {".lock"}


def test_python_calls_are_checked_like_commands():
    assert Plain(rate=1).origin() == Plain(rate=1.0).origin()
    with pytest.raises(ConfigError, match="--kind-of: 'medium'"):
        Plain(kind_of="medium")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="--rate: nan"):
        Plain(rate=float("nan"))
    with pytest.raises(TypeError):
        Plain(unknown=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Plain().text = "x"  # type: ignore[misc]


def test_a_stage_that_breaks_a_convention_fails_when_it_is_imported():
    with pytest.raises(TypeError, match="needs a docstring"):

        class NoHelp(Stage):
            makes = "x"

    with pytest.raises(TypeError, match="must be declared by"):

        class Bare(Stage):
            """A field without a role."""

            makes = "x"
            steps: int = 3


def test_a_stage_without_run_or_without_metrics_is_a_mistake_of_its_author(tmp_path):
    class Torn(Stage):
        """Does nothing."""

        makes = "x"

    with pytest.raises(ConfigError, match=rf"the stage {__name__}:Torn has no `run`"):
        Torn().make(tmp_path / "x")
    Torn.run = lambda self, out: None
    with pytest.raises(
        ConfigError, match=rf"`run` of {__name__}\.\S*Torn returns NoneType, and a stage returns its metrics"
    ):
        Torn().make(tmp_path / "x")
    assert not (tmp_path / "x" / "v1").exists()


def test_flags_are_fields_with_dashes():
    assert flag_of("max_wordpieces") == "--max-wordpieces"
    assert list(roles(Plain)) == [
        "text",
        "tags",
        "rate",
        "kind_of",
        "limit",
        "strict",
        "maybe",
        "corpus",
        "vocabulary",
        "workers",
    ]


def test_a_file_of_stages_holds_exactly_one(tmp_path, monkeypatch):
    folder = tmp_path / "some_stages"
    folder.mkdir()
    stage = 'from realmctl.pipeline import Stage\n\nclass {}(Stage):\n    """Help."""\n    makes = "x"\n'
    (folder / "__init__.py").touch()
    (folder / "one_stage.py").write_text(stage.format("One"))
    monkeypatch.syspath_prepend(tmp_path)
    import some_stages  # type: ignore[import-not-found]

    found = discovery.discover(some_stages)
    assert list(found) == ["one-stage"] and found["one-stage"].command() == "one-stage"
    (folder / "two.py").write_text(stage.format("One") + stage.format("Two"))
    with pytest.raises(ConfigError, match=r"two\.py"):
        discovery.discover(some_stages)
    assert isinstance(some_stages, types.ModuleType)


FILL = (
    "import sys, resource; from tests.fixtures.small_stages import Plain; from realmctl.errors import ResourceError\n"
    "limit = int(sys.argv[2])\n"
    "if limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
    "try: print(Plain(text='x' * 100_000).make(sys.argv[1]).path)\n"
    "except ResourceError as error: print(error.exit_code, error)"
)


def fill(out: Path, limit: int = 0) -> str:
    run = subprocess.run(
        [sys.executable, "-c", FILL, out, str(limit)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return run.stdout


def test_a_file_that_may_not_grow(tmp_path):
    old = Plain().make(tmp_path / "plain")
    assert fill(tmp_path / "plain", 50_000).startswith("5 ")
    assert {path.name for path in (tmp_path / "plain").iterdir()} == {".last", ".lock", "v1"}
    assert open_artifact(tmp_path / "plain").path == old.path
    assert fill(tmp_path / "plain").strip().endswith("v2")


def test_a_disk_that_is_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    try:
        old = Plain().make(disk / "plain").path  # an artifact holds a lease on the disk
        assert "No space left on device" in fill(disk / "plain")
        assert {path.name for path in (disk / "plain").iterdir()} == {".last", ".lock", "v1"}
        assert open_artifact(disk / "plain").path == old
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        assert fill(disk / "plain").strip().endswith("v2")
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_room_names_its_stage_as_its_file(monkeypatch):
    monkeypatch.setattr(discovery, "offered", lambda group: {"cut": "stages.chunk:Chunk"})
    with pytest.raises(ConfigError, match=r"OFFERS names the stage 'cut', and its file 'chunk'\. Give both one name"):
        discovery.own_stages()
