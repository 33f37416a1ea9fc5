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
from docs.make_release import release
from realmctl.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line
)
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
JOB_KEYS = {
    "name",
    "uses",
    "runs-on",
    "timeout-minutes",
    "strategy",
    "steps",
    "needs",
    "if",
    "permissions",
    "environment",
}
STEP_KEYS = {"name", "id", "uses", "with", "run", "if", "env"}
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
        if requirement.name == "realmctl":  # of the extra `all`
            continue
        assert pinned[requirement.name.lower().replace("_", "-")] in requirement.specifier, requirement


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["version"] == __version__
    assert citation["license"] == PROJECT["project"]["license"] and citation["authors"]


@pytest.fixture
def copy(tmp_path):
    """The files that a release changes."""
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "realmctl/version.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"))
    return tmp_path


def artifacts_of(copy, version):
    """The file that `python -m tests.frozen.releases` writes, without artifacts."""
    folder = copy / "tests/frozen/releases"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{version}.zip").touch()


def test_a_release_needs_no_address_and_one_that_is_there_stands_everywhere(copy):
    (copy / "realmctl" / "version.py").write_text('__version__ = "7.0.0"\n')
    assert any("tests/frozen/releases/7.0.0.zip" in each for each in missing(copy))
    artifacts_of(copy, "7.0.0")
    before = (copy / "pyproject.toml").read_text()
    assert release(copy, "", "2030-01-31") == "v7.0.0" and missing(copy) == []
    assert (copy / "pyproject.toml").read_text() == before
    citation = copy / "CITATION.cff"
    citation.write_text(citation.read_text() + "repository-code: https://example.org/a\n")
    assert any("repository-code" in each for each in missing(copy))
    assert "check_release.py" in (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


def test_one_command_fills_in_what_a_release_lacks(copy):
    """And a second version with another address as well."""
    for version, source, date in (("7.0.0", "https://example.org/a/realmctl/", "2030-01-31"), ("7.1.0", "https://example.org/b", "2031-02-01")):  # fmt: skip
        (copy / "realmctl" / "version.py").write_text(f'__version__ = "{version}"\n')
        artifacts_of(copy, version)
        assert missing(copy)
        assert release(copy, source, date) == f"v{version}" and missing(copy) == []
        urls = tomllib.loads((copy / "pyproject.toml").read_text())["project"]["urls"]
        assert urls["Source"] == source.rstrip("/") and len(urls) == 3
        citation = yaml.safe_load((copy / "CITATION.cff").read_text())
        assert citation["version"] == version and str(citation["date-released"]) == date and citation["references"]
    changes = (copy / "CHANGELOG.md").read_text()
    assert changes.index("[Unreleased]") < changes.index("[7.1.0] - 2031-02-01") < changes.index("[7.0.0] - 2030-01-31")


@pytest.mark.parametrize(
    ("source", "date"),
    [("example.org", "2030-01-31"), ("https://example.org/a", "31.1.2030"), ("javascript:1", "2030-01-31")],
)
def test_a_release_with_a_wrong_address_or_date_changes_nothing(copy, source, date):
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with pytest.raises(ValueError):
        release(copy, source, date)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def faults(text: str) -> list[str]:
    """What GitHub would refuse of a workflow, or what would fail on its machine."""
    workflow, makefile = yaml.safe_load(text), (ROOT / "Makefile").read_text(encoding="utf-8")
    targets, found = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)), []
    if workflow["permissions"] != {"contents": "read"}:
        found.append("permissions")
    if HERE_ALONE.search(text) or "secrets." in text:  # publishing is trusted: no token is stored
        found.append("address or token")
    if (
        set(workflow) - {"name", True, "permissions", "concurrency", "jobs"} or not workflow[True]
    ):  # `on` is true in YAML
        found.append("keys")
    for name, job in workflow["jobs"].items():
        steps, needs = (
            job.get("steps", []),
            [job.get("needs", [])] if isinstance(job.get("needs"), str) else job.get("needs", []),
        )
        if ("uses" in job) == ("runs-on" in job and "timeout-minutes" in job) or set(job) - JOB_KEYS:
            found.append(f"{name}: keys")
        found += [f"{name}: needs {each}" for each in needs if each not in workflow["jobs"]]
        for used in [job["uses"]] if "uses" in job else [step["uses"] for step in steps if "uses" in step]:
            if used.startswith("./"):
                if (
                    not (ROOT / used).is_file()
                    or "workflow_call" not in yaml.safe_load((ROOT / used).read_text("utf-8"))[True]
                ):
                    found.append(f"{name}: {used}")
            elif not re.fullmatch(r"[\w.-]+/[\w./-]+@(v\d[\d.]*|release/v\d+|[0-9a-f]{40})", used):
                found.append(f"{name}: {used} is not pinned")
        found += [
            f"{name}: step {step}" for step in steps if ("uses" in step) == ("run" in step) or set(step) - STEP_KEYS
        ]
        for context, key in re.findall(r"\$\{\{\s*(\w+)\.([\w-]+)", yaml.safe_dump(job)):
            known = {
                "matrix": job.get("strategy", {}).get("matrix", {}),
                "steps": [step.get("id") for step in steps],
                "needs": needs,
                "github": ["ref", "event_name", "sha", "ref_name"],
            }
            if key not in known.get(context, []):
                found.append(f"{name}: {context}.{key}")
        for run in [step["run"] for step in steps if "run" in step]:
            found += [
                f"{name}: make {target}" for target in re.findall(r"\bmake ([a-z-]+)", run) if target not in targets
            ]
            found += [
                f"{name}: {file}" for file in re.findall(r"\bpython ([\w./-]+\.py)", run) if not (ROOT / file).is_file()
            ]
        made = [step["with"]["name"] for step in uploads(workflow, needs)]
        for step in steps:
            if "download-artifact" in step.get("uses", "") and step["with"]["name"] not in made:
                found.append(f"{name}: artifact {step['with']['name']}")
    return found


def uploads(workflow: dict, jobs: list[str]) -> list[dict]:
    """The steps of some jobs that upload an artifact."""
    steps = [step for name in jobs for step in workflow["jobs"].get(name, {}).get("steps", [])]
    return [step for step in steps if step.get("uses", "").startswith("actions/upload-artifact@")]


def test_the_issue_forms_can_be_filled_in_and_ask_for_what_doctor_prints():
    forms = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")}
    assert forms.pop("config") == {"blank_issues_enabled": True} and {"bug", "wish"} == set(forms)
    for form in forms.values():
        assert form["name"] and form["description"] and "realmctl doctor" in str(form["body"])
        assert all(part["type"] == "textarea" and part["attributes"]["label"] for part in form["body"])
        assert len({part["id"] for part in form["body"]}) == len(form["body"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_github_takes_the_workflows_and_they_find_what_they_run(path):
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("file", "right", "wrong", "fault"),
    [
        ("release", "needs: [test, build]", "needs: [tests, build]", "publish: needs tests"),
        (
            "release",
            "./.github/workflows/test.yml",
            "./.github/workflows/tests.yml",
            "test: ./.github/workflows/tests.yml",
        ),
        (
            "release",
            "./.github/workflows/test.yml",
            "./.github/workflows/docs.yml",
            "test: ./.github/workflows/docs.yml",
        ),
        ("release", "docs/check_release.py", "docs/check.py", "build: docs/check.py"),
        ("release", "needs: [test, build]", "needs: [test]", "publish: artifact dist"),
        ("test", "matrix.python", "matrix.version", "test: matrix.version"),
        ("test", "make lowest", "make oldest", "lowest: make oldest"),
        ("test", "actions/checkout@v5", "actions/checkout@main", "test: actions/checkout@main is not pinned"),
        ("test", "actions/checkout@v5", "actions/checkout", "test: actions/checkout is not pinned"),
        ("test", "    timeout-minutes: 60\n    strategy", "    strategy", "test: keys"),
        ("docs", "id: deployed", "id: done", "publish: steps.deployed"),
        ("docs", "{contents: read}", "{contents: write}", "permissions"),
    ],
)
def test_a_wrong_workflow_is_found(file, right, wrong, fault):
    text = (ROOT / f".github/workflows/{file}.yml").read_text(encoding="utf-8")
    assert right in text and fault in faults(text.replace(right, wrong))


def test_every_python_of_the_classifiers_is_tested():
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert matrix["jobs"]["test"]["strategy"]["matrix"]["python"] == named
