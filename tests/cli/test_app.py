"""The command line: help in groups, one line on stdout, JSON where it is asked for, and quiet where it is."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import typer

from realmctl.artifacts import open_artifact
from realmctl.cli import app, order
from realmctl.cli.command import command_of
from realmctl.cli.help import escape_markup
from realmctl.cli.invoke import SCHEMA_VERSION
from realmctl.retrieval.answering.pretrained_model import FilledSentence, PretrainedModel
from tests.fixtures.small_stages import Plain

ROOT = Path(__file__).resolve().parents[2]
REALMCTL = [sys.executable, "-P", "-m", "realmctl"]

pytestmark = pytest.mark.usefixtures("here")


def test_help_imports_nothing_heavy_and_lists_the_stages_that_are_there():
    code = (
        "import sys; from realmctl.cli import app\n"
        "try: app.main(['--help'])\n"
        "finally: print('IMPORTED', *sorted(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    text, _, modules = run.stdout.partition("IMPORTED")
    heavy = {
        "torch",
        "transformers",
        "numpy",
        "spacy",
        "tokenizers",
        "hnswlib",
        "huggingface_hub",
        "safetensors",
        "scipy",
    }
    assert not heavy & set(modules.split())
    panels = dict(re.findall(r"─ (\w[\w -]+?) ─+╮\n(.*?)╰", text, re.DOTALL))
    listed = {group: tuple(re.findall(r"^│ (\S+)", panels[group], re.MULTILINE)) for group in panels}
    of_core = {group: listed[group][: len(names)] for group, names in order.GROUPS.items()}
    assert of_core == order.GROUPS and order.OTHERS not in panels
    assert set(list(panels)[-2:]) == set(order.ROOMS.values())
    assert {"import", "export", "rank"} <= set(listed["Extras"]) and {"spider-init", "lm-init"} <= set(listed["Lab"])
    assert listed["First look"][-2:] == ("demo", "doctor") and {"score", "serve", "split"} < {
        *listed["Questions and answers"]
    }
    files = {path.stem.replace("_", "-") for path in (ROOT / "stages").glob("[a-z]*.py")}
    assert files <= {name for names in listed.values() for name in names}
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= 80
    for promised in ("Example: realmctl chunk", "Exit codes:", "75 interrupted", "130 Ctrl-C"):
        assert promised in re.sub(r"\s+", " ", text)


def test_no_arguments_are_a_call_for_help_and_version_is_one_line(realmctl):
    assert realmctl()[:2] == realmctl("-h")[:2] == (0, realmctl("--help")[1])
    assert realmctl("-V")[:2] == realmctl("--version")[:2]
    assert re.fullmatch(r"realmctl \d+\.\d+\.\d+\n", realmctl("-V")[1])


def test_every_command_has_help_in_its_groups(realmctl):
    for name in ["chunk", "tag", "pretrain", "ls", "run", "ask"]:
        code, text, _ = realmctl(name, "--help")
        assert code == 0 and "─ Output ─" in text and max(map(len, text.splitlines())) <= 80
    text = realmctl("chunk", "-h")[1]
    assert "─ Arguments ─" in text and "─ Settings (part of the recipe) ─" in text and "─ Compute ─" in text


def test_no_help_cuts_a_name_and_switches_are_shown_once(realmctl):
    application = typer.main.get_command(app.build())
    for name, command in application.commands.items():  # type: ignore[attr-defined]
        text = realmctl(name, "--help-all")[1]
        assert "…" not in text and max(map(len, text.splitlines())) <= 80
        for parameter in command.params:
            hidden = getattr(parameter, "hidden", False) or parameter.name == "help_all"  # it shows itself
            if parameter.param_type_name == "option" and not hidden:
                switch = f"--[no-]{parameter.opts[0][2:]}"
                assert f"{switch if parameter.secondary_opts else parameter.opts[0]} " in text, (name, parameter.name)
    assert "[default: (on)]" in realmctl("pretrain", "--help-all")[1]


def test_help_shows_brackets_as_they_are(small):
    text = re.sub(r"[│\s]+", " ", small("plain", "-h")[1])
    assert "Text to write: [MASK] or [mask]." in text and "[CLS] and [lower] are not markup." in text
    assert "[default: hello]" in text
    assert escape_markup("[MASK] [mask] [/x] [0]") == r"[MASK] \[mask] \[/x] [0]"


def test_a_foreign_stages_package_is_refused_before_it_runs(tmp_path):
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "__init__.py").write_text("open('ran', 'w')")
    (tmp_path / "stages" / "evil.py").write_text("open('ran', 'w')")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-m", "realmctl", "ls"], capture_output=True, text=True, env=environment)
    assert run.returncode == 2 and f"is found at {tmp_path / 'stages'}" in run.stderr
    safe = subprocess.run([*REALMCTL, "ls", "."], capture_output=True, text=True, env=environment)
    assert (safe.returncode, safe.stdout) == (0, "no artifacts yet\n")
    assert not (tmp_path / "ran").exists()


def test_a_stage_prints_one_line_its_path(realmctl, corpus):
    arguments = ("chunk", corpus, "--tokenizer", "train:200", "--workers", "1")
    code, out, err = realmctl(*arguments)
    assert (code, out) == (0, "artifacts/blocks/v1\n") and "chunk: made artifacts/blocks/v1" in err
    code, out, err = realmctl(*arguments)
    assert (code, out) == (0, "artifacts/blocks/v1\n") and "nothing to do" in err
    code, out, err = realmctl("tag", "--workers", "1")
    assert (code, out) == (0, "artifacts/spans/v1\n")
    blocks = open_artifact("artifacts/blocks")
    assert f"tag: --blocks artifacts/blocks/v1 (blocks {blocks.content[:12]})" in err


def test_names_of_inputs_and_outputs(small, monkeypatch):
    assert small("plain", "--out", "a/b")[1] == "a/b/v1\n"
    assert small("child", "--plain", "a/b/v1", "-o", "c")[1] == "c/v1\n"
    assert small("plain", "-w", "w")[1] == "w/plain/v1\n"
    assert small("child", "-w", "w")[1] == "w/child/v1\n"
    monkeypatch.setenv("REALMCTL_WORKSPACE", "w")
    assert small("child")[1] == "w/child/v1\n"
    assert small("model")[1] == "w/model/v1\n"
    assert small("child", "--plain", "w/model", "--other", "w/model")[1] == "w/child/v2\n"


def test_options_reach_the_stage(small):
    arguments = [
        "--text",
        "x",
        "--tags",
        "a",
        "--tags",
        "b",
        "--rate",
        "1e-3",
        "--kind-of",
        "long",
        "--limit",
        "3",
        "--no-strict",
        "--no-maybe",
        "--workers",
        "2",
    ]
    assert small("plain", *arguments)[0] == 0
    assert open_artifact("artifacts/plain").settings == {
        "text": "x",
        "tags": ["a", "b"],
        "rate": 0.001,
        "kind_of": "long",
        "limit": 3,
        "strict": False,
        "maybe": False,
    }
    small("plain")
    assert open_artifact("artifacts/plain/v2").recipe == Plain().origin().recipe


def test_quiet_leaves_nothing_but_errors_on_stderr(small):
    assert small("plain", "-q")[1:] == ("artifacts/plain/v1\n", "")
    assert small("child", "--quiet")[1:] == ("artifacts/child/v1\n", "")
    code, out, err = small("plain", "-q", "--text", "forbidden")
    assert (code, out) == (2, "") and err.startswith("error: --text forbidden")


def test_json_is_one_object_with_a_version_on_every_command(small, tmp_path):
    Path("p.yaml").write_text("stages: {plain: {stage: plain}}")

    def value(*arguments: object) -> dict:
        code, out, _ = small(*arguments, "--json")
        found = json.loads(out)
        assert code == 0 and found["schema_version"] == SCHEMA_VERSION
        return dict(found)

    assert value("plain", "--dry-run")["makes"] == "artifacts/plain/v1"
    made = value("plain")
    assert (made["path"], made["command"], made["metrics"]) == ("artifacts/plain/v1", "small-stages", {"length": 5})
    assert [entry["path"] for entry in value("ls")["artifacts"]] == ["artifacts/plain/v1"]
    for name in ("artifacts/plain", "plain", "plain/v1"):
        assert value("show", name)["manifest"]["content"] == made["content"]
    assert value("show", "artifacts/plain/v1/text.txt")["artifact"].endswith("artifacts/plain/v1")
    assert value("verify", "artifacts/plain", "artifacts/plain/v1")["verified"][1]["content"] == made["content"]
    assert value("run", "p.yaml", "--dry-run")["steps"][0]["made"] == "artifacts/plain/v1"
    assert value("run", "p.yaml")["made"]["plain"]["path"] == "artifacts/plain/v1"


def test_every_command_takes_json_and_quiet():
    application = typer.main.get_command(app.build())
    for name, command in application.commands.items():  # type: ignore[attr-defined]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--quiet", "-q"} <= options, name


def test_ask_probe_and_refresh_print_what_they_are_given(realmctl, monkeypatch):
    asked = types.SimpleNamespace(record=lambda: {"question": "who?"})
    asking = types.SimpleNamespace(ask=lambda question, *_, **__: asked, ask_language_model=None)
    monkeypatch.setitem(sys.modules, "realmctl.retrieval.answering.asking", asking)
    filler = types.SimpleNamespace(fill_mask=lambda sentence, _: FilledSentence(sentence, (), (), ()))
    monkeypatch.setattr(PretrainedModel, "open", lambda *_, **__: filler)
    monkeypatch.setitem(
        sys.modules,
        "realmctl.training.refresh.refresher",
        types.SimpleNamespace(serve=lambda run, device, executor: None),
    )
    assert json.loads(realmctl("ask", "who?", "--qa-model", "given", "--json")[1]) == {
        "schema_version": 1,
        "question": "who?",
    }
    assert json.loads(realmctl("fill-mask", "a [MASK]", "--model", "given", "--json")[1])["sentence"] == "a [MASK]"
    assert json.loads(realmctl("refresh", "live", "--json")[1])["run"] == "live"


def test_a_dry_run_changes_nothing(small):
    code, out, _ = small("plain", "--dry-run", "--text", "x")
    assert (
        code == 0 and out.startswith("small-stages: would make artifacts/plain/v1\n") and not Path("artifacts").exists()
    )
    assert small("plain", "--dry-run", "--text", "forbidden")[0] == 2
    assert small("child", "--dry-run")[0] == 3


def test_pipelines_from_the_command_line(small):
    Path("p.yaml").write_text("vars: {a: x}\nstages: {plain: {stage: plain, text: '${a}'}, child: {stage: child}}")
    code, out, _ = small("run", "p.yaml", "--until", "plain", "--var", "a=y", "-w", "w")
    assert (code, out) == (0, "w/plain/v1\n") and open_artifact("w/plain").settings["text"] == "y"
    assert "to make" in small("run", "p.yaml", "--dry-run")[1]
    assert small("run", "p.yaml")[1] == "artifacts/plain/v1\nartifacts/child/v1\n"
    code, _, err = small("run", "p.yaml")
    assert code == 0 and err.count("nothing to do") == 2
    assert small("run", "p.yaml", "--var", "b=y")[0] == 2
    assert small("run", "none.yaml")[0] == 3


def test_a_path_that_is_no_unicode_is_printed_as_it_is(small):
    name = os.fsdecode(b"caf\xe9")
    Plain().make("w/plain").path.parent.rename(name)
    run = subprocess.run([*REALMCTL, "ls", os.fsencode(name)], capture_output=True)  # type: ignore[list-item]
    assert run.returncode == 0 and run.stdout.startswith(b"caf\xe9: 1 version in 1 series") and b"\nv1 " in run.stdout


def test_a_character_that_the_terminal_lacks_is_printed_by_its_number(small):
    Plain().make("w/plain").path.parent.rename("a \u2013 b")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    run = subprocess.run([*REALMCTL, "ls", "a \u2013 b"], capture_output=True, env=environment)
    assert run.returncode == 0 and run.stdout.startswith(b"a \\u2013 b: 1 version")


def test_inputs_come_first_and_fields_keep_their_order():
    names = list(inspect.signature(command_of(Plain)).parameters)
    assert names[:4] == ["corpus", "vocabulary", "text", "tags"] and names[-4:] == [
        "out",
        "workspace",
        "json",
        "dry_run",
    ]


def test_a_sweep_runs_every_combination_and_compares_what_is_made_last(small):
    Path("p.yaml").write_text(
        "vars: {text: x, seed: 0}\nstages:\n  plain: {stage: plain, text: '${text}${seed}'}\n  child: {stage: child}\n"
    )
    code, out, err = small("run", "p.yaml", "--sweep", "text=a,b", "--seeds", 2)
    assert code == 0 and "=== run 4 of 4: text=b, seed=1" in err
    assert out.count("artifacts/child/v") == 4 and "a1" in out and "b0" in out
    assert len(json.loads(small("run", "p.yaml", "--sweep", "text=a,c", "--json")[1])["tables"][0]["rows"]) == 2
    assert small("run", "p.yaml", "--sweep", "text=a,b", "--until", "plain", "--dry-run")[1].count("plain") == 4
    for option, told in (("--sweep=nothing=1,2", "nothing"), ("--sweep=text", "--sweep text")):
        code, _, err = small("run", "p.yaml", option)
        assert code == 2 and told in err


def test_a_sweep_whose_variable_changes_nothing_is_refused(small):
    Path("p.yaml").write_text("vars: {seed: 0}\nstages: {plain: {stage: plain, text: x}}\n")
    code, _, err = small("run", "p.yaml", "--seeds", 3)
    assert code == 2 and "every run made the same artifacts/plain/v1" in err
