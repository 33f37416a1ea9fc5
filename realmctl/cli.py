"""The command line. Stages become Typer commands by their fields; exit codes come from `errors`. Only importer of typer."""

from __future__ import annotations

import functools
import inspect
import json
import os
import signal
import sys
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl import __version__, catalogue, log, pipeline
from realmctl.artifact import Artifact
from realmctl.errors import RealmctlError
from realmctl.signals import stop_now
from realmctl.stage import ROLE, Role, Stage, discover, flag_of, roles

SCHEMA_VERSION = 1
PANELS = {"reads": "Inputs", "source": "Inputs", "setting": "Settings (part of the recipe)", "knob": "Compute"}
Workspace = Annotated[
    Path, typer.Option("--workspace", "-w", envvar="REALMCTL_WORKSPACE", help="Where inputs and outputs lie unless named.", rich_help_panel="Output")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel="Output")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.", rich_help_panel="Output")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and do nothing.", rich_help_panel="Output")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Series to write to. Default: <workspace>/<kind>.", rich_help_panel="Output")]

app = typer.Typer(
    name="realmctl",
    help="Retrieval-augmented pre-training, from a Wikipedia dump to an exact-match score. Each stage reads and writes artifacts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def our_stages() -> dict[str, type[Stage]]:
    """The stages beside this package. Refuses a foreign `stages` that the working directory put in the way."""
    import stages

    ours = Path(__file__).resolve().parent.parent / "stages"
    theirs = Path(next(iter(stages.__path__))).resolve()
    if theirs != ours:
        sys.exit(f"error: the package `stages` was imported from {theirs}, not from {ours}. Run realmctl from another folder, or with `python -P -m realmctl`.")
    return pipeline.in_order(discover(stages))


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into one paragraph and the documented exit code; a bug keeps its traceback."""

    @functools.wraps(command)
    def run(**values: Any) -> None:
        log.set_quiet(bool(values.pop("quiet", False)))
        signal.signal(signal.SIGTERM, stop_now)
        try:
            command(**values)
            sys.stdout.flush()
        except RealmctlError as error:
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            print("error: interrupted. Run the same command again; resumable stages go on where they were.", file=sys.stderr)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None

    signature = inspect.signature(command, eval_str=True)
    quiet = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), quiet])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in run.__signature__.parameters.values()}  # type: ignore[attr-defined]
    return run


def command_of(stage: type[Stage]) -> Callable[..., None]:
    """The function that Typer turns into the stage's command."""

    def run(workspace: Path, out: Path | None, json: bool, dry_run: bool, **values: Any) -> None:
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        made = stage(**catalogue.with_defaults(stage, given, workspace))
        for name, artifact in made.inputs().items():
            log.say(f"{stage.command()}: {flag_of(name)} {artifact.path} ({artifact.kind} {artifact.content[:12]})")
        series = out or workspace / stage.makes
        if dry_run:
            emit(catalogue.plan(made, series), json, catalogue.plan_text)
        else:
            emit_artifact(made.make(series), stage.command(), json)

    hints = typing.get_type_hints(stage)
    parameters = [_parameter(item, hints[item.name], stage) for item in fields(stage)]  # type: ignore[arg-type]
    keyword = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    parameters += [
        keyword("out", default=None, annotation=Out),
        keyword("workspace", default=Path("artifacts"), annotation=Workspace),
        keyword("json", default=False, annotation=Json),
        keyword("dry_run", default=False, annotation=DryRun),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = stage.__doc__
    return run


def _parameter(item: Field[Any], hint: Any, stage: type[Stage]) -> inspect.Parameter:
    role: Role = item.metadata[ROLE]
    default = inspect.Parameter.empty if item.default is MISSING else item.default
    if role.name == "reads":
        hint, default = Path | None, None
    if typing.get_origin(hint) is tuple:
        hint = list[typing.get_args(hint)[0]]  # type: ignore[misc]
        default = list(default) if isinstance(default, tuple) else default
    if role.positional:
        info: Any = typer.Argument(help=role.help, show_default=False)
    else:
        names = [f"{flag_of(item.name)}/--no-{item.name.replace('_', '-')}"] if hint is bool else [flag_of(item.name)]
        info = typer.Option(*names, help=_help(item.name, role), rich_help_panel=PANELS[role.name])
    return inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, info])


def _help(name: str, role: Role) -> str:
    if role.name != "reads" or role.named:
        return role.help
    return f"{role.help} Default: <workspace>/{name}{', if there is one' if role.optional else ''}."


def emit(value: Any, as_json: bool, text: Callable[[Any], str]) -> None:
    """The result on stdout: one JSON object, or its text."""
    print(json.dumps({"schema_version": SCHEMA_VERSION, **value}, ensure_ascii=False) if as_json else text(value))


def emit_artifact(artifact: Artifact, command: str, as_json: bool) -> None:
    """A stage's result: the path of the version it made or found, as the only line on stdout."""
    emit({"command": command, **catalogue.summary(artifact)}, as_json, lambda value: str(value["path"]))


def _version(value: bool) -> None:
    if value:
        print(f"realmctl {__version__}")
        raise typer.Exit()


@app.callback()
def _main(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False) -> None:
    pass


def _ls(folder: Annotated[Path | None, typer.Argument(help="Folder of series, or one series. Default: the workspace.")] = None, workspace: Workspace = Path("artifacts"), json: Json = False) -> None:
    """List series and versions: size, age, what made them."""
    emit({"artifacts": catalogue.listing(folder or workspace)}, json, catalogue.listing_text)


def _show(artifact: Annotated[Path, typer.Argument(help="Series or version.")], workspace: Workspace = Path("artifacts"), json: Json = False) -> None:
    """Print an artifact's manifest, and what it was made from as a tree."""
    emit(catalogue.shown(artifact, workspace), json, catalogue.shown_text)


def _verify(artifacts: Annotated[list[Path], typer.Argument(help="Series or versions.")], json: Json = False) -> None:
    """Recompute every hash of an artifact, parts included."""
    emit({"verified": [catalogue.verified(path) for path in artifacts]}, json, catalogue.verified_text)


def _run(
    file: Annotated[Path, typer.Argument(help="YAML file of stages.")],
    until: Annotated[str | None, typer.Option(help="Stop after this output.")] = None,
    var: Annotated[list[str] | None, typer.Option(help="name=value, over the file's vars. Repeatable.")] = None,
    workspace: Annotated[Path | None, typer.Option("--workspace", "-w", help="Instead of the file's workspace.")] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Make the outputs of a YAML pipeline in order of their inputs; what is made already is skipped."""
    plan = pipeline.read(file, our_stages(), dict(pipeline.pair(text) for text in var or []), workspace)
    steps = plan.until(until)
    if dry_run:
        emit({"steps": plan.outline(steps)}, json, pipeline.outline_text)
    else:
        made = {name: catalogue.summary(artifact) for name, artifact in plan.make(steps).items()}
        emit({"made": made}, json, lambda value: "\n".join(f"{entry['path']}" for entry in value["made"].values()))


def _refresh(
    run: Annotated[Path, typer.Argument(help="Folder of a running pretrain: vN.partial/live.")],
    device: Annotated[str, typer.Option(help="Device to embed on.")] = "auto",
) -> None:
    """Keep the index of a running pretrain fresh. Pretrain starts this itself; by hand it serves another GPU or host."""
    from realmctl.train.refresher import serve

    serve(run, device)


def _ask(
    question: Annotated[str, typer.Argument(help="A question.")],
    qa_model: Annotated[Path | None, typer.Option(help="Default: <workspace>/qa-model.")] = None,
    blocks: Annotated[Path | None, typer.Option(help="Default: <workspace>/blocks.")] = None,
    top: Annotated[int, typer.Option(help="Answers to print.")] = 3,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Answer a question, with the evidence it was read from and p(z|x)."""
    from realmctl.retrieval.asking import answers_text, ask

    emit(ask(question, qa_model or workspace / "qa-model", blocks or workspace / "blocks", top), json, answers_text)


def _probe(
    sentence: Annotated[str, typer.Argument(help="A sentence with one or more [MASK].")],
    model: Annotated[Path | None, typer.Option(help="Default: <workspace>/model.")] = None,
    blocks: Annotated[Path | None, typer.Option(help="Default: <workspace>/blocks.")] = None,
    candidates: Annotated[int, typer.Option(help="Candidates, the null document included.")] = 8,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """Fill the blanks of a sentence, with and without retrieval, candidate by candidate (the paper's Table 3)."""
    from realmctl.retrieval.asking import probe, probe_text

    emit(probe(sentence, model or workspace / "model", blocks or workspace / "blocks", candidates), json, probe_text)


HAND_WRITTEN = (_ls, _show, _verify, _run, _refresh, _ask, _probe)


def build() -> typer.Typer:
    """Register every stage, then the hand-written commands."""
    for name, stage in our_stages().items():
        app.command(name, rich_help_panel="Stages", help=stage.__doc__)(guarded(command_of(stage)))
    for command in HAND_WRITTEN:
        app.command(command.__name__.strip("_"), rich_help_panel="Commands")(guarded(command))
    return app


def main() -> None:
    """Entry point of `realmctl`."""
    build()()


__all__ = ["app", "build", "main", "our_stages", "roles"]
