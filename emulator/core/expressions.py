"""Regular expressions of clients, with the syntax and the linear time of RE2, as RE2/J's in Kafka.

A test must not hang on an expression of its client, so none reaches Python's `re`. The library is google-re2, which has
no wheels for every Python and platform. It is imported with the first expression.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

MEMORY_MAX = 8 << 20
"""The memory of a compiled expression in bytes, RE2's default."""

CACHED_MAX = 256

DESCRIPTIONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large": "expression too large",
}
"""RE2/J's descriptions of errors, where RE2 has other words."""


class InvalidExpressionError(ValueError):
    """An expression that cannot be compiled; the text goes on after "Expression `…` "."""


@lru_cache(CACHED_MAX)
def compiled(pattern: str) -> Any:  # noqa: ANN401 - the library has no types
    """Return the compiled expression. Raises InvalidExpressionError if it is invalid, or the library is missing."""
    try:
        import re2  # noqa: PLC0415 - most groups have no expressions
    except ImportError:
        raise InvalidExpressionError("cannot be resolved: google-re2 is missing, pip install google-re2.") from None
    options = re2.Options()
    options.max_mem, options.log_errors = MEMORY_MAX, False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0]
        description = (text.decode(errors="replace") if isinstance(text, bytes) else str(text)).split(": ")[0]
        problem = f"is not a valid regular expression: {DESCRIPTIONS.get(description, description)}."
        raise InvalidExpressionError(problem) from None
