"""`koordinator completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from . import commands

shell_argument = click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))


@click.command()
@shell_argument
def completion(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash: eval "$(koordinator completion bash)" in ~/.bashrc
    zsh:  eval "$(koordinator completion zsh)" in ~/.zshrc
    fish: koordinator completion fish > ~/.config/fish/completions/koordinator.fish
    """  # noqa: D301 - Click keeps the lines after \b
    click.echo(script(commands, shell, "koordinator"))


def script(group: click.Group, shell: str, program: str) -> str:
    """Return the text that completes the commands of a program in a shell."""
    complete = get_completion_class(shell)
    assert complete is not None, "click supports every choice"
    variable = f"_{program}_complete".replace("-", "_").upper()
    return complete(group, {}, program, variable).source()
