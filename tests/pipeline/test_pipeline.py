"""Pipelines: checked whole before anything is made, made in order of their inputs, and made once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from realmctl.errors import ConfigError, InputError
from realmctl.pipeline import Stage, setting
from realmctl.pipeline.discovery import in_order
from realmctl.pipeline.pipeline import Pipeline, outline_text
from realmctl.pipeline.pipeline_file import pair, read
from tests.fixtures.small_stages import STAGES

FILE = """
workspace: w
vars: {word: hi, rate: 3e-5}
stages:
  model: {stage: model, child: grandchild}
  grandchild: {stage: child, other: child, plain: plain}
  child: {stage: child}
  plain: {stage: plain, text: "${word} $$5", rate: "${rate}", tags: [a, b], kind-of: long, limit: null, strict: false}
  other: {stage: plain, corpus: "@plain/deep"}
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def parsed(text: str, *variables: str, workspace: Path | None = None) -> Pipeline:
    Path("p.yaml").write_text(text)
    return read(Path("p.yaml"), STAGES, dict(map(pair, variables)), workspace)


def stage_of(line: str) -> Pipeline:
    return parsed(f"stages:\n  x: {{stage: plain, {line}}}")


def test_outputs_are_made_in_order_of_their_inputs_and_only_once(capsys):
    pipeline = parsed(FILE.replace('corpus: "@plain/deep"', 'corpus: "@plain/text.txt"'))
    names = [step.name for step in pipeline.steps]
    assert all(
        names.index(a) < names.index(b)
        for a, b in [("plain", "child"), ("child", "grandchild"), ("grandchild", "model"), ("plain", "other")]
    )
    made = pipeline.make(pipeline.steps)
    assert {str(artifact.path) for artifact in made.values()} == {f"w/{name}/v1" for name in names}
    assert made["plain"].settings == {
        "text": "hi $5",
        "rate": 3e-5,
        "tags": ["a", "b"],
        "kind_of": "long",
        "limit": None,
        "strict": False,
        "maybe": None,
    }
    assert made["child"].manifest.inputs == {"plain": made["plain"].content}
    assert made["grandchild"].manifest.inputs == {"plain": made["plain"].content, "other": made["child"].content}
    assert made["other"].file("corpus.txt").read_text() == "hi $5"
    capsys.readouterr()
    assert {name: a.path for name, a in pipeline.make(pipeline.steps).items()} == {n: a.path for n, a in made.items()}
    assert capsys.readouterr().err.count("nothing to do") == 5


def test_a_changed_setting_makes_again_what_follows_from_it():
    first = parsed(FILE, "word=one").make(parsed(FILE, "word=one").until("child"))
    second = parsed(FILE, "word=two").make(parsed(FILE, "word=two").until("child"))
    assert (second["plain"].path.name, second["child"].path.name) == ("v2", "v2")
    assert first["plain"].content != second["plain"].content


def test_until_takes_what_is_needed_and_no_more():
    pipeline = parsed(FILE)
    assert [step.name for step in pipeline.until("child")] == ["plain", "child"]
    assert {step.name for step in pipeline.until("other")} == {"plain", "other"}
    assert pipeline.until(None) == pipeline.steps
    with pytest.raises(ConfigError, match="--until nothing"):
        pipeline.until("nothing")


def test_an_output_may_start_after_others_that_it_does_not_read():
    text = "stages: {x: {stage: plain, starts-after: [z]}, y: {stage: child, plain: x}, z: {stage: plain, text: z}}"
    pipeline = parsed(text)
    assert [step.name for step in pipeline.steps] == ["z", "x", "y"]
    assert [step.name for step in pipeline.until("y")] == ["x", "y"], "it is not made for this alone"
    made = pipeline.make(pipeline.until("y"), jobs=1)
    plain = parsed("stages: {x: {stage: plain}}", workspace=Path("other"))
    assert made["x"].recipe == plain.make(plain.steps)["x"].recipe


def test_a_dry_run_says_what_is_made_and_writes_nothing():
    pipeline = parsed(FILE)
    assert {line["made"] for line in pipeline.outline(pipeline.steps)} == {None} and not Path("w").exists()
    pipeline.make(pipeline.until("child"))
    outline = {line["output"]: line for line in pipeline.outline(pipeline.steps)}
    assert {name for name, line in outline.items() if line["made"]} == {"plain", "child"}
    assert outline["child"]["made"] == "w/child/v1" and outline["other"]["inputs"] == {"corpus": "@plain/deep"}
    text = outline_text({"steps": list(outline.values())})
    assert "made: w/child/v1" in text and text.count("to make") == 3


def test_the_workspace_may_be_given(tmp_path):
    pipeline = parsed(FILE, workspace=tmp_path / "other")
    assert pipeline.make(pipeline.until("plain"))["plain"].path == tmp_path / "other" / "plain" / "v1"


def test_an_input_may_be_an_artifact_that_is_there():
    parsed("workspace: old\nstages: {plain: {stage: plain}}").make(
        parsed("workspace: old\nstages: {plain: {stage: plain}}").steps
    )
    pipeline = parsed("stages: {child: {stage: child, plain: old/plain}}")
    assert pipeline.make(pipeline.steps)["child"].lineage.keys() == {"plain"}


BAD_FILES = {
    "": "mapping",
    "[]": "mapping",
    "a: [": "is not a pipeline",
    "stages: {x: {stage: plain}}\nstages: {}": "line 1: 'stages'",
    "stages: {x: {stage: plain, text: a, text: b}}": "'text'",
    "stages: {x: {stage: plain}, y: *x}": "aliases",
    "stages: {x: &x {stage: plain}, y: *x}": "aliases",
    "stages: !!python/object/apply:os.system ['true']": "is not a pipeline",
    "stages: !!timestamp x": "line 1: tags",
    "stages: {x: {stage: plain, text: !!bool zz}}": "line 1: tags",
    "stages: {? [a] : b}": "is not a pipeline",
    "[" * 5000: "is not a pipeline",
    "stages: '" + "x" * 2**20 + "'": "1 MiB",
    "\x00": "is not a pipeline",
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.items(), ids=range(len(BAD_FILES)))
def test_a_file_that_is_no_pipeline_is_refused(text, message):
    with pytest.raises(InputError, match=message) as error:
        parsed(text)
    assert str(error.value).startswith("p.yaml") and "\n" not in str(error.value)


def test_the_time_that_a_file_takes_grows_with_its_keys_and_not_with_their_square():
    def seconds(keys: int) -> float:
        text, start = "stages:\n" + "".join(f"  k{key}: 1\n" for key in range(keys)), time.process_time()
        with pytest.raises(ConfigError):
            parsed(text)
        return time.process_time() - start

    assert seconds(16_000) < 32 * seconds(2_000)  # 8 times as long, or 64 if it grew with the square


def test_a_file_that_cannot_be_read():
    Path("p.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match=r"p\.yaml"):
        read(Path("p.yaml"), STAGES, {}, None)
    for path in (Path("none.yaml"), Path()):
        with pytest.raises(InputError):
            read(path, STAGES, {}, None)


BAD_SETTINGS = {
    "stges: {}": "'stges'.*'stages'",
    "stages: [a]": "`stages`",
    "workspace: w": "`stages`",
    "stages: {x: {text: a}}": "x .*`stage`.*plain, child",
    "stages: {x: {stage: plane}}": "'plane'.*'plain'",
    "stages: {x: {stage: 5}}": "'5'",
    "stages: {x: {stage: plain, txt: a}}": "'txt'.*'text'",
    "stages: {../x: {stage: plain}}": "name of an output",
    "stages: {/x: {stage: plain}}": "name of an output",
    "stages: {.x: {stage: plain}}": "name of an output",
    "stages: {x: {stage: plain, rate: fast}}": r"p\.yaml:1: x\.rate: 'fast'",
    "stages: {x: {stage: plain, limit: 2.5}}": r"x\.limit: '2\.5'",
    "stages: {x: {stage: plain, strict: 1}}": r"x\.strict: '1'",
    "stages: {x: {stage: plain, kind-of: medium}}": r"x\.kind-of: 'medium'",
    "stages: {x: {stage: plain, text: [a]}}": r"x\.text: \['a'\]",
    "stages: {x: {stage: plain, text: $}}": r"\$\$",
    "stages: {x: {stage: plain, text: '${a}'}}": "'a'",
    "vars: [a]\nstages: {}": "`vars`",
    "stages: {x: {stage: child, plain: nowhere}}": "'nowhere'",
    "stages: {x: {stage: child, plain: [a]}}": "plain",
    "stages: {x: {stage: plain, corpus: '@y/z'}}": "'y'.* x",
    "defaults: [a]\nstages: {}": "`defaults`",
    "defaults: {plain: a}\nstages: {}": "`defaults`",
    "defaults: {plane: {}}\nstages: {}": "'plane'.*'plain'",
    "defaults: {plain: {txt: a}}\nstages: {}": "'txt'.*'text'",
    "defaults: {plain: {rate: fast}}\nstages: {x: {stage: plain}}": r"p\.yaml:1: x\.rate: 'fast'",
    "stages:\n  x:\n    stage: plain\n    kind-off: short": r"p\.yaml:4: unknown key 'kind-off'; did you mean 'kind-of'",
    "defaults:\n  plain: {rate: 1}\nstages:\n  x: {stage: plain,\n    rate: fast}": r"p\.yaml:5: x\.rate: 'fast'",
    "stages:\n  x:\n    stage: plain\n  y: {rate: 1}": r"p\.yaml:4: y .*`stage`",
    "stages: {x: {stage: plain, starts-after: y}}": r"x\.starts-after: 'y'",
    "stages: {x: {stage: plain, starts-after: [y]}}": "'y'.* x",
    "stages: {x: {stage: plain, starts-after: [x]}}": "need each other: ",
    "stages: {x: {stage: child, other: y, plain: y}, y: {stage: child, other: x, plain: x}}": "need each other: ",
}


@pytest.mark.parametrize(("text", "message"), BAD_SETTINGS.items())
def test_a_mistake_is_named_with_its_place(text, message):
    with pytest.raises(ConfigError, match=message) as error:
        parsed(text)
    assert str(error.value).startswith("p.yaml")


def test_a_source_that_is_missing_is_noticed_before_anything_is_made():
    with pytest.raises(InputError, match=r"y\.corpus: none\.txt"):
        parsed("stages: {x: {stage: plain}, y: {stage: plain, corpus: [none.txt]}}")


def test_variables_are_those_of_the_file():
    assert parsed(FILE, "word=5").steps[0].values["text"] == "5 $5"
    with pytest.raises(ConfigError, match=r"'wrd'.*'word'"):
        parsed(FILE, "wrd=x")
    with pytest.raises(ConfigError):
        parsed(FILE, "word")
    assert pair("a=b=c") == ("a", "b=c")


def test_a_setting_with_a_variable_that_is_null_has_its_default():
    text = "vars: {most: null, also: null}\nstages: {x: {stage: plain, limit: '${most}', maybe: $also}}"
    assert parsed(text).steps[0].values == {"limit": None, "maybe": None}
    assert parsed(text, "most=3").steps[0].values["limit"] == 3


def test_defaults_hold_for_every_output_of_their_stage_unless_it_says_otherwise():
    pipeline = parsed(
        "vars: {word: hi}\n"
        "defaults: {plain: {text: '${word}', kind-of: long, limit: 3}}\n"
        "stages: {x: {stage: plain}, y: {stage: plain, kind_of: short, limit: null}, z: {stage: child, plain: x}}"
    )
    values = {step.name: step.values for step in pipeline.steps}
    assert values["x"] == {"text": "hi", "kind_of": "long", "limit": 3}
    assert values["y"] == {"text": "hi", "kind_of": "short", "limit": None}
    assert values["z"] == {}


class Weighed(Stage):
    """Text, and perhaps weights."""

    makes = "plain"
    weight: float = setting("Weight.", default=0.0)
    batch: int = setting("Texts that are weighed together.", default=8, used_with="weight")


def test_a_default_that_says_nothing_for_an_output_is_left_out_and_an_own_setting_is_refused():
    Path("p.yaml").write_text(
        "defaults: {weighed: {batch: 4}}\nstages:\n  with: {stage: weighed, weight: 1}\n  without: {stage: weighed}\n"
        "  own: {stage: weighed, batch: 4}"
    )
    steps = {step.name: step for step in read(Path("p.yaml"), {"weighed": Weighed}, {}, None).steps}
    assert steps["with"].build({}, Path()).batch == 4 and steps["without"].build({}, Path()).batch == 8
    with pytest.raises(ConfigError, match="--batch needs --weight"):
        steps["own"].build({}, Path())


def test_an_optional_input_that_is_null_is_not_read_whatever_the_defaults_name():
    pipeline = parsed(
        "defaults: {child: {other: first}}\n"
        "stages: {plain: {stage: plain}, first: {stage: child, other: null}, second: {stage: child}}"
    )
    inputs = {step.name: step.inputs for step in pipeline.steps}
    assert inputs["first"] == {"plain": "plain"} and inputs["second"] == {"plain": "plain", "other": "first"}
    with pytest.raises(ConfigError, match="plain: None"):
        parsed("stages: {plain: {stage: plain}, x: {stage: child, plain: null}}")


def test_yaml_values_as_people_write_them():
    values = stage_of("rate: 1e-3, limit: 1e5, strict: yes, tags: one, text: 2024-05-01").steps[0].values
    assert values == {"rate": 0.001, "limit": 100_000, "strict": True, "tags": ("one",), "text": "2024-05-01"}
    assert stage_of("vocabulary: 'train:30'").steps[0].values == {"vocabulary": "train:30"}


def test_numbers_mean_what_people_read_and_not_what_yaml_1_1_says():
    values = stage_of("limit: 010, text: 1:30, rate: 1_000.5, tags: [0x10, 2001-12-14t21:59:43Z, 2.50]").steps[0].values
    assert values == {"limit": 10, "text": "1:30", "rate": 1000.5, "tags": ("0x10", "2001-12-14t21:59:43Z", "2.50")}
    for written in ("1:30", "0x10", "0b1"):
        with pytest.raises(ConfigError, match=rf"x\.limit: '{written}'"):
            stage_of(f"limit: {written}")
    assert [step.name for step in parsed("stages: {010: {stage: plain}}").steps] == ["010"]


def test_stages_come_in_order_of_the_data():
    order = list(in_order(STAGES))
    assert order.index("plain") < order.index("child") < order.index("model")


@pytest.mark.parametrize("value", ["~", "", "[a]", "{a: b}", "true", '" "', '"a\\0b"', "~nobody-of-this-name/w"])
def test_a_workspace_that_is_no_path_is_refused(value):
    with pytest.raises(ConfigError, match="workspace"):
        parsed(f"workspace: {value}\nstages: {{x: {{stage: plain}}}}")


def test_a_workspace_that_looks_like_a_number_is_the_text_that_was_written(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    for value, path in (("5", "5"), ("010", "010"), ("~/w", "/home/me/w"), ("${v}", "1:30")):
        found = parsed(f"workspace: {value}\nvars: {{v: 1:30}}\nstages: {{x: {{stage: plain}}}}")
        assert found.workspace == Path(path)


def test_a_variable_that_is_no_text_cannot_stand_within_one():
    for value in ("[a]", "{a: b}"):
        with pytest.raises(ConfigError, match="v"):
            parsed(f"vars: {{v: {value}}}\nstages: {{x: {{stage: plain, text: 'a ${{v}}'}}}}")
