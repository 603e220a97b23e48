"""Groups of commands: old options are translated, and an error of the library gets the flag that would help."""

from __future__ import annotations

import click

from heapwright._cli.renamed import current_words
from heapwright._support.errors import HeapwrightError, ParameterError


class Group(click.Group):
    """Commands whose errors name a flag, where the API's parameter of that name has one."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except HeapwrightError as error:
            raise self._with_flag(error, ctx) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; its old options become today's."""
        name, command, words = super().resolve_command(ctx, args)
        if command is None or isinstance(command, click.Group):
            return name, command, words
        path, group = [name or ""], ctx
        while group.parent is not None:
            path.insert(0, group.info_name or "")
            group = group.parent
        return name, command, current_words(ctx, " ".join(path), words)

    def _with_flag(self, error: HeapwrightError, ctx: click.Context) -> Exception:
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        if error.parameter == "repair" and ctx.invoked_subcommand != "import":
            return HeapwrightError(f"{error} (heapwright trace repair)")
        options = _options_of(command)
        flag = f"--also {error.parameter}" if f"--also {error.parameter}" in options else ""
        flag = flag or "--" + (error.parameter or "").replace("_", "-")
        option, message = options.get(flag), f"{error} ({flag})"
        if command and isinstance(error, ParameterError) and (option or "--set" in options):
            text = error.message if option else str(error)
            context = click.Context(command, ctx, ctx.invoked_subcommand)
            return click.BadParameter(text, context, option or options["--set"])
        return HeapwrightError(message) if option else error


def _options_of(command: click.Command | None) -> dict[str, click.Parameter]:
    """The parameters of a command by their flags, and by the choices of --also, each of which is a flag of the API."""
    options = {name: param for param in (command.params if command else ()) for name in param.opts}
    also = options.get("--also")
    if also is not None and isinstance(also.type, click.Choice):
        options |= {f"--also {choice}": also for choice in also.type.choices}
    return options
