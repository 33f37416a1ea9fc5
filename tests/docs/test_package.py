"""What describes the package to the world: citation, workflows, groups of requirements, pins."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from docs.check_release import missing
from realmctl.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line
)
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
HERE_ALONE = re.compile(r"/work\b|index-url|extra-index|https?://(?!github\.com/|\S*\.github\.io)")


def requirements() -> list[Requirement]:
    project = PROJECT["project"]
    installed = re.findall(r"^EXTRAS := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[0].split(
        ","
    )
    groups = [*(project["optional-dependencies"][name] for name in installed), *PROJECT["dependency-groups"].values()]
    return [Requirement(text) for texts in (project["dependencies"], *groups) for text in texts]


def test_every_requirement_is_pinned_to_a_version_that_it_allows():
    pinned = {name.lower().replace("_", "-"): Version(version) for name, version in PINS.items()}
    for requirement in requirements():
        assert pinned[requirement.name.lower().replace("_", "-")] in requirement.specifier, requirement


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["version"] == __version__
    assert citation["license"] == PROJECT["project"]["license"] and citation["authors"]


def test_a_release_without_an_address_is_refused(tmp_path):
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "realmctl/version.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"))
    address, citation = "https://example.org/realmctl", (tmp_path / "CITATION.cff").read_text()
    if "urls" not in PROJECT["project"]:
        assert any("project.urls" in each for each in missing(tmp_path))
        with (tmp_path / "pyproject.toml").open("a") as file:
            file.write(f'\n[project.urls]\nSource = "{address}"\n')
        (tmp_path / "CITATION.cff").write_text(f"{citation}repository-code: {address}\ndate-released: 2030-01-31\n")
        (tmp_path / "CHANGELOG.md").write_text(f"## [{__version__}] - 2030-01-31\n")
    assert missing(tmp_path) == []
    assert "check_release.py" in (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_the_targets_of_the_makefile_and_name_no_machine(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", text)) <= targets
    assert workflow["permissions"] == {"contents": "read"} and not HERE_ALONE.search(text)
    assert "secrets." not in text, "publishing is trusted: no token is stored"
    for job in workflow["jobs"].values():
        assert ("uses" in job) != ("runs-on" in job)
        assert not job.get("needs") or set(job["needs"] if isinstance(job["needs"], list) else [job["needs"]]) <= set(
            workflow["jobs"]
        )


def test_every_python_of_the_classifiers_is_tested():
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert matrix["jobs"]["test"]["strategy"]["matrix"]["python"] == named
