"""Errors that end a job with one line: a job that cannot start, and a job that fails on the way."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_FAILED = 1
"""Exit status of a job that failed after it started."""


class JobRefused(click.ClickException):
    """A job that cannot start as requested; nothing has changed. The exit status is 2."""


class JobFailed(Exception):
    """A job that failed after it started."""


KNOWN_ERRORS = {
    r"No space left on device": "the disk is full. Free some space and run the command again",
    r"\[PATH_NOT_FOUND\] Path does not exist: (?P<file>.+?)\.\s+SQLSTATE": "{file}: no such file or folder",
    r"Encountered error while reading file (?P<file>.+?)\.\s+SQLSTATE": (
        "{file} cannot be read ({cause}). Repair or remove it, and run the command again"
    ),
    r"(?:AccessControlException|AccessDeniedException|Permission denied):? *(?P<file>[^\n]*)": "no permission: {file}",
    r"FoldFailed: (?P<what>[^\n]+)": "{what}",
    r"Python worker failed to connect back": "Spark could not start Python in time. Run the command again",
    r"Connection refused|UNAVAILABLE": "Spark does not respond. Check the server and run the command again",
}
"""Patterns in the text of Spark's exceptions, with the message that each of them stands for."""

_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*(?P<what>[^\n]+)", re.MULTILINE)


def explain(error: Exception) -> str | None:
    """Return the meaning of a Spark exception in one line; None if it is unknown."""
    text = str(error)
    for pattern, message in KNOWN_ERRORS.items():
        match = re.search(pattern, text)
        if match:
            causes = _CAUSE.findall(text)
            values = {"cause": causes[-1] if causes else "see Spark's log", **match.groupdict()}
            return message.format(**values)
    return None


@contextmanager
def spark_errors_explained() -> Iterator[None]:
    """Turn a known exception of Spark or the file system into a JobFailed with one line."""
    try:
        yield
    except Exception as error:
        # PySpark does not wrap every Java exception; that of a failed task is an example
        packages = {each.__module__.partition(".")[0] for each in type(error).__mro__}
        is_theirs = isinstance(error, OSError) or packages & {"py4j", "pyspark"}
        message = explain(error) if is_theirs else None
        if message is None:
            raise
        raise JobFailed(message) from error
