"""What jobs share on the command line: absolute paths and the progress bar."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

URL = re.compile(r"\w\w+:")
"""The start of a path that is not of this machine."""


def absolute(path: str) -> str:
    """Return an absolute path: Spark may run in another folder, or on another machine."""
    return path if URL.match(path) else str(Path(path).absolute())


@contextmanager
def progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar while stderr is a terminal. Yield the function to call with the name of each step."""
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting Spark", total=steps, completed=-1)

        def report_progress(step: str) -> None:
            bar.update(task, description=step, advance=1)

        yield report_progress
