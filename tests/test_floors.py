"""The floors of the building, and what no file of it may do."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted([*(ROOT / "realmctl").rglob("*.py"), *(ROOT / "stages").rglob("*.py")])
MODULES_NOT_TO_IMPORT = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "pty"}
CALLS_NOT_TO_MAKE = {"eval", "exec", "compile", "__import__", "os.fork", "os.system", "os.popen", "torch.save"}
FORKS = {"realmctl/execution/shards.py": {"calls os.fork", "processes that are not spawned"}}
"""The one file that forks, and only a process that has no other thread: tests/execution/test_shards.py."""


def test_the_floors_hold():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_module_has_its_floor():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    floors = next(contract for contract in config["contracts"] if contract["type"] == "layers")["layers"]
    known = {name.strip() for floor in floors for name in floor.split("|")}
    parts = (path for path in (ROOT / "realmctl").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    rooms = {"realmctl.extras", "realmctl.lab", "realmctl.integrations"}  # the last is the short name of a room
    assert {f"realmctl.{path.stem}" for path in parts if not path.stem.startswith("__")} - rooms == known - {"stages"}


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def constant(call: ast.Call, keyword: str) -> object:
    """The literal given for a keyword; None if it is not given, or not spelled out."""
    values = [word.value for word in call.keywords if word.arg == keyword]
    return values[0].value if values and isinstance(values[0], ast.Constant) else None


def problems(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            yield from (f"imports {name}" for name in names if name.partition(".")[0] in MODULES_NOT_TO_IMPORT)
        elif isinstance(node, ast.Call):
            yield from (f"line {node.lineno}: {problem}" for problem in problems_of_call(node))


def problems_of_call(call: ast.Call) -> Iterator[str]:
    name = dotted(call.func)
    arguments = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if name in CALLS_NOT_TO_MAKE:
        yield f"calls {name}"
    if constant(call, "shell") or constant(call, "allow_pickle"):
        yield f"{name} with shell or allow_pickle"
    if name in ("np.load", "numpy.load") and constant(call, "allow_pickle") is not False:
        yield "np.load without allow_pickle=False"
    if name == "torch.load" and constant(call, "weights_only") is not True:
        yield "torch.load without weights_only=True"
    if name in ("yaml.load", "yaml.load_all") and [dotted(argument) for argument in call.args[1:]] != ["_Loader"]:
        yield "yaml.load without the safe loader"
    if name.startswith("yaml.") and name.endswith(("unsafe_load", "full_load")):
        yield name
    if name.endswith(("get_context", "set_start_method")) and arguments != ["spawn"]:
        yield "processes that are not spawned"
    if name in ("multiprocessing.Process", "multiprocessing.Pool", "Pool", "Process"):
        yield "processes of the default kind, which may be forks"
    if (
        name.endswith("ProcessPoolExecutor")
        and len(call.args) < 2
        and not any(k.arg == "mp_context" for k in call.keywords)
    ):
        yield "a pool of the default kind, which may be forks"
    if name.endswith("from_pretrained") and constant(call, "trust_remote_code"):
        yield "trust_remote_code"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_does_what_none_may(path):
    found = {problem.rpartition(": ")[2] for problem in problems(ast.parse(path.read_text(encoding="utf-8")))}
    assert found == FORKS.get(path.relative_to(ROOT).as_posix(), set())


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.x",
        "eval('1')",
        "exec('')",
        "os.fork()",
        "subprocess.run('x', shell=True)",
        "np.load(p)",
        "np.load(p, allow_pickle=True)",
        "torch.load(p)",
        "torch.load(p, weights_only=False)",
        "torch.save(x, p)",
        "yaml.load(t)",
        "yaml.load(t, yaml.Loader)",
        "yaml.unsafe_load(t)",
        "multiprocessing.get_context('fork')",
        "multiprocessing.get_context()",
        "multiprocessing.Process(target=f)",
        "ProcessPoolExecutor(4)",
        "AutoModel.from_pretrained(p, trust_remote_code=True)",
    ],
)
def test_the_search_finds_what_it_looks_for(text):
    assert list(problems(ast.parse(text)))


def test_nothing_refers_to_a_number_that_a_reader_cannot_look_up():
    """A comment says what was wrong, and not the number of a ticket."""
    files = [
        *SOURCES,
        *(path for name in ("tests", "docs", "examples", "benchmarks") for path in (ROOT / name).rglob("*")),
    ]
    texts = [path for path in files if path.suffix in (".py", ".md", ".sh") and path != Path(__file__)]
    assert len(texts) > 400
    ticket = re.compile(r"\bissue #?\d+", re.IGNORECASE)
    assert not [path for path in texts if ticket.search(path.read_text(encoding="utf-8"))]
