"""The command `koordinator`.

Exit status: 0 success, 1 partial failure, 2 usage error, which is reported in one line on stderr.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, NoReturn

import click
from click.shell_completion import CompletionItem

import koordinator
from koordinator.imports import collections_paused

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_ERROR = 2
"""Exit status of a command that is not valid, or could not start."""

INTERRUPTED = 130
"""Exit status of shells after SIGINT."""

SUMMARIES = {
    "completion": "Print the completion script of SHELL.",
    "doctor": "Describe this machine for a bug report: versions, libraries, ports, Docker, Java, browser.",
    "groups": "List, describe, change and delete consumer groups of any Kafka.",
    "lab": "Play rebalance protocols side by side, in virtual time.",
    "offsets": "Save groups with their members and committed offsets to a file, and load them.",
    "serve": "Serve a cluster until SIGINT or SIGTERM.",
    "share-offsets": "Describe, reset and delete the start offsets of share groups of any Kafka (KIP-932).",
    "transactions": "List and abort transactions of any Kafka from 3.0 on.",
}
"""The line of each command in lists, which is the first sentence of its own help."""


class Commands(click.Group):
    """A group that imports a command when it is used, so that `groups` does not wait for the server to load.

    `modules` is the module of each command. `summaries` are its lines in the help and in completions, which import no
    command.
    """

    modules: ClassVar[dict[str, str]] = {name: f"koordinator.cli.{name.replace('-', '_')}" for name in SUMMARIES}
    summaries: ClassVar[dict[str, str]] = SUMMARIES

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, sorted."""
        del ctx
        return sorted(self.modules)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summaries[name]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin with an incomplete word, and the options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=self.summaries[name]) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. Raises click.UsageError with the nearest command."""
        # an option here is not known either; Click says so
        if args[0] not in self.modules and not args[0].startswith("-"):
            suggest = import_module("koordinator.emulator.config.suggest")
            ctx.fail(suggest.unknown("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None."""
        del ctx
        if cmd_name not in self.modules:
            return None
        with collections_paused():
            command = getattr(import_module(self.modules[cmd_name]), cmd_name.replace("-", "_"))
            gc.freeze()
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
    """Run a command of the group and exit with the status it returns, or with 2 after a usage error."""
    try:
        # standalone mode would report usage errors in three lines
        status = group.main(None if arguments is None else list(arguments), prog_name, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(USAGE_ERROR)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        name = context.command_path if context is not None else prog_name
        click.echo(f"{name}: {one_line(error.format_message())}", err=True)
        sys.exit(USAGE_ERROR)
    except OSError as error:
        # stdout: commands report the errors of files and connections themselves
        click.echo(f"{prog_name}: cannot write to stdout: {error.strerror or error}", err=True)
        # the interpreter would flush the same text again at exit, and report a second error
        sys.stdout = None
        sys.exit(USAGE_ERROR)
    except click.Abort:
        # interrupted before the command installed its signal handlers
        sys.exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())
