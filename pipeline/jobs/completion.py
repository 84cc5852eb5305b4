"""`koordinator-pipeline completion`: the script that completes jobs and options in a shell."""

from __future__ import annotations

import click

from koordinator.cli.completion import script, shell_argument


@click.command()
@shell_argument
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash: eval "$(koordinator-pipeline completion bash)" in ~/.bashrc
    zsh:  eval "$(koordinator-pipeline completion zsh)" in ~/.zshrc
    fish: koordinator-pipeline completion fish > ~/.config/fish/completions/koordinator-pipeline.fish
    """  # noqa: D301 - Click keeps the lines after \b
    jobs = context.find_root().command
    assert isinstance(jobs, click.Group)
    click.echo(script(jobs, shell, "koordinator-pipeline"))
