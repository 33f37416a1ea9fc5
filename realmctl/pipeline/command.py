"""A command that makes no artifact: its options are fields, as those of a stage, and `run` prints a result.

    class Ask(InWorkspace):
        "Answer a question."                                                    # the help text
        question: str = argument("A question.")
        qa_model: Path | None = reads("qa-model", help="...", explicit_only=True, default=None)
        top: int = setting("Number of answers to print.", default=3, at_least=1, short="-k")

        def run(self, show: Show) -> None:
            ...
            show(asked.record(), lambda _: str(asked))

An input that is declared by `reads` is the path that the user named; `run` opens it. `--json` and `--quiet` come by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

from realmctl.errors import ConfigError
from realmctl.pipeline import help_texts
from realmctl.pipeline.fields import output, roles, unheeded
from realmctl.pipeline.settings import Settings


class Show(Protocol):
    """Prints a result on stdout, at once."""

    def __call__(self, value: Any, text: Callable[[Any], str] | None) -> None:
        """Print `value`, a mapping or a dataclass of JSON values, as one JSON object where `--json` asks for it, otherwise as text.

        text: formats the value for people. None: people are told nothing on stdout.
        """


class Command(Settings):
    """A command that makes no artifact. A subclass has a docstring, which is its help, fields, and `run`."""

    computes: ClassVar[bool] = False
    """Whether it computes with PyTorch. The command then takes `--threads`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for _, error in unheeded(type(self), {name: getattr(self, name) for name in roles(type(self))}):
            raise error

    def run(self, show: Show) -> None:
        """Do the work and print its result. Raises the errors of `realmctl.errors`."""
        raise ConfigError(f"the command {type(self).__module__}:{type(self).__name__} has no `run`. Define it there.")


class InWorkspace(Command):
    """A command with a workspace."""

    workspace: Path = output(
        help_texts.WORKSPACE, default=Path("artifacts"), short="-w", environment="REALMCTL_WORKSPACE"
    )
