"""`import realmctl`: light, and its public names are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import realmctl
from realmctl import stages
from realmctl.pipeline.discovery import own_stages

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"torch", "numpy", "transformers", "spacy", "tokenizers", "matplotlib", "typer", "stages"}


def modules_after(code: str) -> set[str]:
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return set(run.stdout.split())


def test_importing_realmctl_imports_nothing_heavy():
    loaded = modules_after("import realmctl; realmctl.__version__; dir(realmctl)")
    assert "realmctl" in loaded and not HEAVY & loaded
    assert {name for name in loaded if name.startswith("realmctl")} == {"realmctl", "realmctl.version"}


@pytest.mark.parametrize(
    "code",
    [
        "import realmctl; realmctl.stages.Embed",
        "from realmctl import stages; stages.Pretrain",
        "import realmctl; realmctl.open_artifact",
        "import realmctl; realmctl.RealmctlError",
    ],
)
def test_stages_and_artifacts_need_no_torch(code):
    assert not {"torch", "numpy", "transformers", "spacy"} & modules_after(code)


def test_dir_lists_the_public_names_and_each_resolves():
    loaders = {"load", "load_blocks", "load_index", "load_model", "load_qa_model", "load_retriever", "load_search"}
    public = {"Artifact", "RealmctlError", "__version__", "open_artifact", "stages", *loaders}
    assert public <= set(dir(realmctl)) and set(realmctl.__all__) == public
    assert not {"import_module", "TYPE_CHECKING"} & set(dir(realmctl))
    for name in public:
        assert getattr(realmctl, name) is not None
    assert realmctl.load.__module__ == "realmctl.loading" and realmctl.stages is stages


def test_a_name_that_does_not_exist_is_an_attribute_error():
    assert not hasattr(realmctl, "lod")
    with pytest.raises(AttributeError, match="'lod'"):
        realmctl.lod  # noqa: B018
    with pytest.raises(AttributeError, match="Embedd"):
        stages.Embedd  # noqa: B018


def test_the_stages_are_those_of_the_command_line():
    classes = {stage.__name__: stage for stage in own_stages().values()}
    assert set(stages.__all__) == set(dir(stages)) == set(classes)
    for name, stage in classes.items():
        assert getattr(stages, name) is stage
    told = re.findall(r"^    from stages\.\w+ import (\w+) as \1$", Path(stages.__file__).read_text(), re.MULTILINE)
    core = {name for name, stage in classes.items() if stage.__module__.startswith("stages.")}
    assert set(told) == core, "the list for editors"


def test_the_version_is_the_one_that_is_packaged():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["version"]
    assert f'__version__ = "{realmctl.__version__}"\n' in (ROOT / config["path"]).read_text()


def test_a_foreign_stages_package_is_refused_before_it_runs(tmp_path):
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "__init__.py").write_text("open('ran', 'w')")
    code, environment = "import realmctl; realmctl.stages.Embed", {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert "ConfigError: the package `stages` is found at" in run.stderr and not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_a_type_checker_sees_the_names(tmp_path):
    """Without TYPE_CHECKING's imports every name would be an error or Any."""
    file = tmp_path / "user.py"
    file.write_text(
        "import realmctl\n"
        "reveal_type(realmctl.open_artifact('x'))\n"
        "reveal_type(realmctl.stages.Embed)\n"
        "reveal_type(realmctl.load_qa_model('x').ask('Who?').best.text)\n"
        "reveal_type(realmctl.load_retriever('x'))\n"
        "realmctl.lod\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path / "cache"),
        str(file),
    ]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    told = [line.partition("note: Revealed type is ")[2].strip('"') for line in run.stdout.splitlines()]
    assert [name.rpartition(".")[2] for name in told if name] == ["Artifact", "Embed", "str", "LoadedRetriever"]
    assert 'Module has no attribute "lod"' in run.stdout
