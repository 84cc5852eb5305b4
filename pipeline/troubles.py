"""What stops a job, in one line each: what could not be begun, and what could not be done as a whole."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_DONE = 1
"""The exit status of a job that was begun and could not be done as a whole."""


class Refused(click.ClickException):
    """What was asked for cannot be begun; nothing has been changed. The command's exit status is 2."""


class Failed(Exception):
    """What was begun could not be done as a whole."""


KNOWN = {
    r"No space left on device": "the disk is full. Make room and run this again: it goes on where it stopped",
    r"(?:maximum supported|no) log version|UnsupportedLogVersion|INVALID_LOG_VERSION": (
        "{store}/checkpoint was written by another version of Spark. Use that one, or load the inputs into a new store"
    ),
    r"\[PATH_NOT_FOUND\] Path does not exist: (?P<file>.+?)\.\s+SQLSTATE": "{file}: no such file or folder",
    r"Encountered error while reading file (?P<file>.+?)\.\s+SQLSTATE": (
        "{file} cannot be read ({cause}). Repair or remove it, and run this again"
    ),
    r"(?:AccessControlException|AccessDeniedException|Permission denied):? *(?P<file>[^\n]*)": "no permission: {file}",
    r"Python worker failed to connect back": "Spark could not start Python in time. Run this again",
    r"Connection refused|UNAVAILABLE": "Spark is gone, or does not answer",
}
"""What Spark's exceptions say somewhere in their many lines, and what that means here."""

_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*(?P<what>[^\n]+)", re.MULTILINE)


def plainly(error: Exception, store: str) -> str | None:
    """What an exception of Spark's means, in one line; None if it is not one that we know."""
    text = str(error)
    for pattern, line in KNOWN.items():
        found = re.search(pattern, text)
        if found:
            causes = _CAUSE.findall(text)
            words = {"store": store, "cause": causes[-1] if causes else "see Spark's log", **found.groupdict()}
            return line.format(**words)
    return None


@contextmanager
def told_plainly(store: str) -> Iterator[None]:
    """Make a Failed with one line of an exception of Spark's that is known."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - not everybody has it
    from pyspark.errors import PySparkException  # noqa: PLC0415 - nor this

    try:
        yield
    # PySpark leaves exceptions of Java as they are that it does not know, like those of a task that failed
    except (PySparkException, Py4JError) as error:
        line = plainly(error, store)
        if line is None:
            raise
        raise Failed(line) from error
