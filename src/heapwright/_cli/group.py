"""Groups of commands, and the one place where an error of the library gets the flag that would help."""

from __future__ import annotations

import click

from heapwright._support.errors import HeapwrightError, ParameterError


class Group(click.Group):
    """Commands whose errors name a flag, where the API's parameter of that name has one."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except HeapwrightError as error:
            raise self._with_flag(error, ctx) from error

    def _with_flag(self, error: HeapwrightError, ctx: click.Context) -> Exception:
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        flag = "--" + (error.parameter or "").replace("_", "-")
        option = next((param for param in command.params if flag in param.opts), None) if command else None
        if command is None or option is None:
            return error
        if isinstance(error, ParameterError):
            return click.BadParameter(error.message, click.Context(command, ctx, ctx.invoked_subcommand), option)
        return HeapwrightError(f"{error} ({flag})")
