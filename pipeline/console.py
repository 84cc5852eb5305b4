"""What jobs share on the command line: paths, and the progress of a job."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

URL = re.compile(r"\w\w+:")
"""The start of a path that is not of this machine."""

LINE_S = 10.0
"""The shortest time between two lines of progress, where stderr is no terminal."""


def absolute(path: str) -> str:
    """Return an absolute path: Spark may run in another folder, or on another machine."""
    return path if URL.match(path) else str(Path(path).absolute())


def escaped(paths: Sequence[str]) -> list[str]:
    """Return paths that Spark does not take for patterns."""
    return [re.sub(r"([\[\]{}*?\\])", r"\\\1", path) for path in paths]


@contextmanager
def progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Show the progress on stderr. Yield the function to call with the name of each step.

    A terminal has a bar. Elsewhere a step is one line if it begins LINE_S or more after the line before it.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _progress_lines(steps)
        return
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting Spark", total=steps, completed=-1)

        def report_progress(step: str) -> None:
            bar.update(task, description=step, advance=1)

        yield report_progress


def _progress_lines(steps: int) -> Callable[[str], None]:
    """Return a function that writes a line for steps of a long job."""
    started = last_line = time.monotonic()
    done = -1

    def report_progress(step: str) -> None:
        nonlocal done, last_line
        done += 1
        now = time.monotonic()
        if now - last_line >= LINE_S:
            last_line = now
            click.echo(f"koordinator-pipeline: {now - started:.0f} s, {done} of {steps} steps done: {step}", err=True)

    return report_progress
