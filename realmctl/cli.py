"""The command line: the stages, the commands beside them, and the one entry point. Only it knows typer."""

from __future__ import annotations

import importlib.util
import inspect
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from realmctl import __version__, catalogue, pipeline, pipeline_file
from realmctl.beside import BESIDE
from realmctl.commands import DryRun, Json, command_of, emit, escaped, exit_code, guarded, path
from realmctl.errors import ConfigError
from realmctl.signals import stop_now
from realmctl.stage import Stage, discover

EPILOG = (
    "Example: realmctl chunk dump.xml.bz2 && realmctl tag && realmctl ict-init --bert bert-base-uncased\n\n"
    "Exit codes: 0 done, or nothing to do; 1 a bug; 2 usage or a bad setting; 3 an input is missing, "
    "malformed or corrupt; 4 artifacts that do not fit together; 5 not enough memory, disk or device; "
    "6 a quality gate failed; 7 locked by another run; 75 interrupted, run the command again; 130 Ctrl-C."
)


def _version(value: bool) -> None:
    if value:
        print(f"realmctl {__version__}")
        raise typer.Exit()


Version = typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")


def our_stages() -> dict[str, type[Stage]]:
    """The stages beside this package. Raises ConfigError for a foreign `stages`, before any of it runs."""
    ours = Path(__file__).resolve().parent.parent / "stages"
    found = importlib.util.find_spec("stages")
    theirs = Path(next(iter(found.submodule_search_locations or ()), "")) if found else None
    if theirs is None or theirs.resolve() != ours:
        raise ConfigError(
            f"the package `stages` is found at {theirs}, not at {ours}. Run realmctl from another folder, "
            "or with `python -P -m realmctl`."
        )
    import stages

    return pipeline.in_order(discover(stages))


def _run(
    file: Annotated[Path, typer.Argument(parser=path, help="YAML file of stages.")],
    until: Annotated[str | None, typer.Option(help="Stop after this output.")] = None,
    var: Annotated[list[str] | None, typer.Option(help="name=value, over the file's vars. Repeatable.")] = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", parser=path, help="Instead of the file's workspace.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            rich_help_panel="Compute",
            help="Stages made at a time. They divide the cores, unless OMP_NUM_THREADS says how many threads each takes.",
        ),
    ] = 1,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Make the outputs of a YAML pipeline in order of their inputs; what is made already is skipped.

    With --jobs, stages that do not need each other run at once. After a failure the running ones are let end.
    """
    variables = dict(pipeline_file.pair(text) for text in var or [])
    plan = pipeline_file.read(file, our_stages(), variables, workspace)
    steps = plan.until(until)
    if dry_run:
        emit({"steps": plan.outline(steps)}, json, pipeline.outline_text)
    else:
        made = {name: catalogue.summary(artifact) for name, artifact in plan.make(steps, jobs).items()}
        emit({"made": made}, json, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))


def _main(version: Annotated[bool, Version] = False) -> None:
    """Retrieval-augmented pre-training, from a Wikipedia dump to an exact-match score.

    Each stage reads and writes artifacts.
    """


def build() -> typer.Typer:
    """The application: every stage, then the hand-written commands."""
    app = typer.Typer(
        name="realmctl",
        epilog=EPILOG,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
    )
    app.callback()(_main)
    for name, stage in our_stages().items():
        text = escaped(inspect.getdoc(stage) or "")
        app.command(name, rich_help_panel="Stages", help=text)(guarded(command_of(stage)))
    for command in (_run, *BESIDE):
        name = command.__name__.strip("_")
        app.command(name, rich_help_panel="Beside the stages")(guarded(command))
    return app


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of `realmctl`: parse, run, leave with the documented exit code."""
    signal.signal(signal.SIGTERM, stop_now)
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(exit_code(lambda: _parsed_and_run(given or ["--help"])))


def _parsed_and_run(arguments: list[str]) -> Any:
    try:
        return build()(arguments, standalone_mode=False)
    except Exception as error:
        message = getattr(error, "format_message", None)  # a usage error, of whichever click typer brings
        if message is None:
            raise
        where = getattr(getattr(error, "ctx", None), "command_path", "realmctl")
        raise ConfigError(f"{message()} See `{where} --help`.") from None
