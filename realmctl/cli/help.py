"""The `--help` of a command, readable on a terminal of 80 columns."""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any

from typer.core import TyperCommand, TyperOption

WIDEST_TYPE = 16
"""Characters of the column of types. Choices that are longer are listed in the help text."""

EVERY = "realmctl.every_option"
"""Key of the context's `meta`, whether the help lists the advanced options too."""


class ShownCommand(TyperCommand):
    """A command whose help never cuts the name of an option, and lists what most people set first.

    A switch is shown as `--[no-]name` instead of as two names in two columns. The options that the command's function names in `advanced` are listed
    by `--help-all` alone.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        shown, advanced = copy.copy(self), getattr(self.callback, "advanced", ())
        left_out = (
            ()
            if ctx.meta.get(EVERY)
            else [each.name for each in self.params if each.name in advanced and not getattr(each, "hidden", False)]
        )
        hidden = {*left_out, *(() if left_out else ("help_all",))}
        shown.params = [_for_display(each, ctx) for each in self.params if each.name not in hidden]
        if left_out:
            shown.epilog = f"{len(left_out)} more options that few people set: realmctl {self.name} --help-all"
        TyperCommand.format_help(shown, ctx, formatter)


def _for_display(parameter: Any, ctx: Any) -> Any:
    if not isinstance(parameter, TyperOption):
        return parameter
    shown = copy.copy(parameter)
    type_text = parameter.display_type_rich(ctx) or ""
    if parameter.secondary_opts:
        shown.opts, shown.secondary_opts, shown.metavar = [f"--[no-]{parameter.opts[0].lstrip('-')}"], [], "<switch>"
        default = parameter.default
        shown.show_default = ("on" if default else "off") if isinstance(default, bool) else False
    elif "|" in type_text and len(type_text) > WIDEST_TYPE:
        shown.metavar = "<name>"
        shown.help = f"{parameter.help} One of: {type_text.strip('<>').replace('|', ', ')}."
    return shown


def description_of(function: object) -> str:
    """Return a docstring as help text: each paragraph is one line, which the terminal wraps."""
    text = inspect.getdoc(function) or ""
    return escape_markup(re.sub(r"(?<!\n)\n(?!\n)", " ", text))


def escape_markup(text: str) -> str:
    """Return text in which rich does not take [words in brackets] for a style."""
    return re.sub(r"(\\*)(\[[a-z#/@][^[]*?\])", r"\1\1\\\2", text)
