"""`koordinator completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from . import commands


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash: eval "$(koordinator completion bash)" in ~/.bashrc
    zsh:  eval "$(koordinator completion zsh)" in ~/.zshrc
    fish: koordinator completion fish > ~/.config/fish/completions/koordinator.fish
    """  # noqa: D301 - Click keeps the lines after \b
    complete = get_completion_class(shell)
    assert complete is not None, "click supports every choice"
    click.echo(complete(commands, {}, "koordinator", "_KOORDINATOR_COMPLETE").source())
