"""Variables of the environment that say what options of `koordinator serve` say, for containers."""

from __future__ import annotations

import click

PREFIX = "KOORDINATOR_"

OTHERS = {"--trace": "KOORDINATOR_TRACE_FILE"}
"""Options whose variable is not called as they are: KOORDINATOR_TRACE is one of the pytest plugin, and no file."""


def variable_of(option: click.Option) -> str:
    """The variable of an option: `--control-port` is KOORDINATOR_CONTROL_PORT."""
    flag = option.opts[0]
    return OTHERS.get(flag, PREFIX + flag.removeprefix("--").replace("-", "_").upper())


def with_variables(command: click.Command) -> click.Command:
    """Let every option of a command be said by a variable, too; what is said on the command line comes first.

    An option that may be given more than once takes several values, with spaces between them; an empty variable is as
    good as none.
    """
    for option in command.params:
        if isinstance(option, click.Option):
            option.envvar, option.show_envvar = variable_of(option), True
    return command
