"""The command `koordinator`.

What a user does wrong is said in one line on stderr, and the exit status is 2; 0 is an end as wished. A command that
was begun and could not be done as a whole ends with 1.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, NoReturn

import click

import koordinator

if TYPE_CHECKING:
    from collections.abc import Sequence

REFUSED = 2
"""The exit status when a command was not understood, or could not begin."""


HOMES = {"groups": "koordinator.cli.groups", "offsets": "koordinator.cli.offsets", "serve": "koordinator.cli.serve"}
"""The module of each command."""


class Commands(click.Group):
    """Each command is imported when it is used: one that talks to a broker does not wait for a server to load.

    `homes` names the module of each.
    """

    homes: ClassVar[dict[str, str]] = HOMES

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the help."""
        del ctx
        return sorted(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        del ctx
        if cmd_name not in self.homes:
            return None
        command = getattr(import_module(self.homes[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(name="koordinator", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(koordinator.__version__, "--version", message="%(prog)s %(version)s")
def commands() -> None:
    """A Kafka group coordinator to test consumers against."""


def main(arguments: Sequence[str] | None = None, prog_name: str = "koordinator") -> NoReturn:
    """Run a command of `koordinator` and exit."""
    run(commands, arguments, prog_name)


def run(group: click.Group, arguments: Sequence[str] | None, prog_name: str) -> NoReturn:
    """Run a command of the group and exit: 0 when it ended as wished, 2 with one line on stderr when it was refused.

    A command may return another status.
    """
    try:
        # not Click's own ending: its usage errors are three lines
        status = group.main(None if arguments is None else list(arguments), prog_name, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(REFUSED)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        name = context.command_path if context is not None else prog_name
        click.echo(f"{name}: {one_line(error.format_message())}", err=True)
        sys.exit(REFUSED)
    except click.Abort:
        # interrupted before there was anything to end in order
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)


def one_line(text: str) -> str:
    """A message without line breaks, whatever its author thought of."""
    return " ".join(text.split())
