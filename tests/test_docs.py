"""Every `realmctl ...` line that a user may copy is parsed against the real flags, and generated pages are fresh."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from realmctl.cli.app import build
from realmctl.cli.available_stages import available_stages
from realmctl.pipeline import hints, removed
from realmctl.pipeline.presets import names_for, presets, settings_of
from realmctl.pipeline.values import typed

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "skills").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
]
GUIDES = [page for page in PAGES if (ROOT / "docs" / "results") not in page.parents]
"""All but pages of results, which tell what was run once."""
SCRIPTS = [*sorted((ROOT / "examples").glob("*.sh")), *sorted((ROOT / "examples/cluster").iterdir())]
LAUNCHED = re.compile(r"^(?:#\s*|run |torchrun .* -m )+(?=realmctl )")
DEFAULT = re.compile(r"(?:^|\s)([A-Z_]+)=(?:\$\{\1:-([^}$]*)\}|([^\s$]+))")
ARRAY = re.compile(r'"\$(?:\{\w+\[@\]\}|@)"')
OPTIONAL = re.compile(r"\$\{\w+:\+[^}]*\}")
VARIABLE = re.compile(r"\$\{?([A-Z_a-z]+)(?:[:\-?+][^}]*)?\}?")


UsageError = typer.BadParameter.__bases__[0]
"""The root of the usage errors of the click that Typer carries."""


@pytest.fixture(scope="module")
def app() -> TyperGroup:
    command = typer.main.get_command(build())
    assert isinstance(command, TyperGroup)
    return command


def commands_of_the_example_plugin() -> set[str]:
    """The commands that the example package of docs/extending.md adds. They exist only where it is installed."""
    files = (ROOT / "examples" / "plugin").glob("*/stages/[!_]*.py")
    return {file.stem.replace("_", "-") for file in files}


def lines_of(path: Path) -> list[str]:
    """Return the realmctl commands of a page or script, with variables replaced by their defaults or by a word.

    Arrays and ${NAME:+...} hold a user's further options, and none are given. tests/test_examples.py gives them.
    """
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"```(?:bash|sh)\n(.*?)```", text, re.DOTALL)) + "\n".join(
            re.findall(r"`(realmctl [^`]+)`", text)
        )
    values = {name: first or second or "" for name, first, second in DEFAULT.findall(text)}
    text = OPTIONAL.sub("", ARRAY.sub("", text))
    text = VARIABLE.sub(lambda match: values.get(match[1], "word"), text)
    parts = re.split(r"\n|&&|;|\|(?!\|)|<\(|\$\(", text)
    lines = [LAUNCHED.sub("", part.strip()).rstrip(")") for part in parts]
    return [line for line in lines if line.startswith("realmctl ")]


COMMANDS = [(path.name, line) for path in [*PAGES, *SCRIPTS] for line in lines_of(path)]


@pytest.mark.parametrize("page", [page for page in PAGES if "results" not in page.parts], ids=lambda page: page.name)
def test_commands_and_outputs_fit_into_their_box_on_the_site(page: Path) -> None:
    """Python has the length of lines of the code."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    limits = {"python": 120}
    assert not [line for kind, block in blocks for line in block.splitlines() if len(line) > limits.get(kind, 110)]


def test_there_are_commands_to_check() -> None:
    calling = [
        path.name for path in SCRIPTS if re.search(r"^\s*realmctl ", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(calling) > 3 and {name for name, _ in COMMANDS} >= {"README.md", *calling}


@pytest.mark.parametrize(("where", "line"), COMMANDS)
def test_documented_command_parses(app: TyperGroup, where: str, line: str) -> None:
    words = shlex.split(line.split(" >")[0].split("#")[0])[1:]
    if words[:1] and words[0] in commands_of_the_example_plugin() and where == "extending.md":
        return
    if words and not words[0].startswith("-"):
        assert words[0] in app.commands, f"{where}: there is no command {words[0]!r}: {line}"
        arguments = [word for word in words[1:] if word not in ("...", "…")]
        try:
            app.commands[words[0]].make_context(words[0], arguments)
        except UsageError as error:
            named_in_passing = where.endswith(".md") and not arguments
            assert named_in_passing, f"{where}: {line}: {error.message}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_no_page_names_an_option_that_is_gone(app: TyperGroup, page: Path) -> None:
    """An option that another command still has may be named. Lines of commands are parsed above."""
    live = {flag for command in app.commands.values() for parameter in command.params for flag in parameter.opts}
    gone = {option for _, option in removed.OPTIONS} - live
    text = page.read_text(encoding="utf-8")
    assert "--refresh-drift" in gone
    assert not [option for option in sorted(gone) if re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)]


def test_command_reference_is_fresh() -> None:
    from docs.make_commands import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "run: python docs/make_commands.py"


def test_the_tour_names_every_room() -> None:
    text = (ROOT / "docs" / "code.md").read_text(encoding="utf-8")
    core = [path.parent for path in (ROOT / "realmctl").glob("*/__init__.py")]
    assert core and not [folder for folder in core if f"{folder.name}/" not in text]
    rooms = [path.parent for kind in ("extras", "lab") for path in (ROOT / "realmctl" / kind).glob("*/__init__.py")]
    assert rooms and not [
        folder for folder in rooms if f"  {folder.name}/" not in text and f", {folder.name}/" not in text
    ]


def test_every_option_is_described(app: TyperGroup) -> None:
    """In the command's section, or among the options that it shares, which it then names, or among those of most commands."""
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    common, _, shared = page.partition("## Options of most commands\n")[2].partition("## Shared options\n")
    for name, command in app.commands.items():
        section = re.split(r"^##", page.partition(f"\n### {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        assert section.strip(), name
        for flag in (parameter.opts[0] for parameter in command.params if parameter.opts[0].startswith("--")):
            line = re.compile(rf"^- `--(?:\[no-\])?{flag.lstrip('-')}[` ]", re.MULTILINE)
            named = re.search(rf"`--(?:\[no-\])?{flag.lstrip('-')}`", section)
            described = line.search(section) or line.search(common) or (named and line.search(shared))
            assert flag == "--help" or described, (name, flag)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """Plots too."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing, f"{page.name} links to {missing}"


def test_pages_named_in_code_exist() -> None:
    files = [path for folder in ("realmctl", "stages", "examples") for path in (ROOT / folder).rglob("*")]
    code = [path for path in files if path.suffix in (".py", ".sh", ".yaml")]
    named = {page for path in code for page in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text(encoding="utf-8"))}
    assert "docs/refresh.md" in named
    assert not [page for page in sorted(named) if not (ROOT / page).exists()]


def rows_of(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading of docs/concepts/fidelity.md or tests/parity/pitfalls.md."""
    pages = ("docs/concepts/fidelity.md", "tests/parity/pitfalls.md")
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    lines = [line for line in text.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines() if "|" in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


@pytest.mark.parametrize(("heading", "count"), [("Forty-seven pitfalls", 47), ("Acceptance checks", 13)])
def test_every_trap_and_check_names_tests_that_there_are(heading: str, count: int) -> None:
    rows = rows_of(heading)
    assert [int(row[0]) for row in rows] == list(range(1, count + 1))
    for number, *_, tests in rows:
        named = re.findall(r"(tests/[\w/]+\.py)::(\w+)", tests)
        assert named or "does not apply" in " ".join(rows[int(number) - 1]), number
        for file, function in named:
            body = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
            assert function in {node.name for node in body if isinstance(node, ast.FunctionDef)}, f"{file}::{function}"


OFFICIAL_WAYS = "Where our default is not the official one"


def flags_in(text: str) -> list[tuple[str, str, str]]:
    """Return (stage, flag, value) of each `stage --flag value` in a text."""
    return [(name, flag, value) for name, flag, value in re.findall(r"`([a-z-]+) (--[a-z-]+) ([^` ]+)`", text)]


def given(app: TyperGroup, name: str, flag: str, value: str) -> Any:
    """Return the value that a stage gets from a flag on the command line."""
    context = app.commands[name].make_context(name, [flag, value], resilient_parsing=True)
    field = flag.lstrip("-").replace("-", "_")
    return typed(hints(available_stages()[name])[field], context.params[field], flag)


def test_every_flag_that_restores_the_official_way_parses(app: TyperGroup) -> None:
    cells = [row[-1] for row in rows_of(OFFICIAL_WAYS)]
    flags = [found for cell in cells for found in flags_in(cell)]
    assert len(flags) >= 25 and not [cell for cell in cells if cell.startswith("none")]
    for name, flag, value in flags:
        found = given(app, name, flag, value)
        assert (",".join(found) if isinstance(found, tuple) else str(found)) == value, f"{name} {flag}"


def test_presets_set_the_flags_that_restore_the_official_way(app: TyperGroup) -> None:
    """The page lists those that no preset sets. Where our default is the official way, the cell has the paper's flag."""
    section = (ROOT / "docs" / "concepts" / "fidelity.md").read_text(encoding="utf-8").partition(OFFICIAL_WAYS)[2]
    introduction = section.partition("\n|")[0]
    assert set(re.findall(r"`([a-z-]+)`", introduction)) == set(presets())

    def is_set(name: str, flag: str, value: str) -> bool:
        found, field = given(app, name, flag, value), flag.lstrip("-").replace("-", "_")
        values = [settings_of(preset, name).get(field) for preset in names_for(name)]
        return any(set(found) <= set(held or ()) if isinstance(found, tuple) else found == held for held in values)

    flags = [flag for row in rows_of(OFFICIAL_WAYS) if not row[-1].startswith("default") for flag in flags_in(row[-1])]
    assert {flag for flag in flags if not is_set(*flag)} == set(flags_in(introduction))
