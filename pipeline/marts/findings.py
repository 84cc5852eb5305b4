"""Findings: the results of checks, and the texts and times they consist of.

A check is a function `CheckInput -> DataFrame` of findings, built with `findings`: each passes, fails or is
inconclusive, with its events. `{name}` and `{software}` in a text stand for the member's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

GROUP = ("trace_id", "group_id")

OK = "NONE"
"""The error of a successful response."""

PASS, FAIL, INCONCLUSIVE, NOT_APPLICABLE = "pass", "fail", "inconclusive", "not_applicable"


def findings(  # noqa: PLR0913 - all but three are by name
    frame: DataFrame,
    status: Column | str,
    first: Column | str,
    last: Column | str | None = None,
    *,
    text: Column | None = None,
    member: Column | str | None = None,
    n: Column | str | None = None,
) -> DataFrame:
    """Return findings: `status` of each row is PASS, FAIL or INCONCLUSIVE; rows without a status are dropped.

    `first` and `last` are sequence numbers. `text` is required unless the status is PASS. `member` is the member id
    concerned. `n` is the number of cases a row stands for, 1 by default.
    """
    ends = [_column(first), *([] if last is None else [_column(last)])]
    judged = _column(F.lit(status) if isinstance(status, str) else status)
    return frame.select(
        *GROUP,
        judged.alias("status"),
        (F.least(*ends) if last is not None else ends[0]).alias("first_seq"),
        (F.greatest(*ends) if last is not None else ends[0]).alias("last_seq"),
        F.when(judged != PASS, F.lit(None) if text is None else text).alias("text"),
        (F.lit(None).cast("string") if member is None else _column(member)).alias("member_id"),
        (F.lit(1) if n is None else _column(n)).cast("bigint").alias("n"),
    ).where("status IS NOT NULL")


def _column(value: Column | str) -> Column:
    return F.col(value) if isinstance(value, str) else value


def call_text(call: str = "") -> Column:
    """Describe a call: `#12 JoinGroup v9 from a as member a-1 (generation 1) -> OK`. `call` names a struct."""
    at = f"{call}." if call else ""
    name = F.coalesce(f"{at}instance_id", _unless_empty(f"{at}client_id"), f"{at}member_id", F.lit(""))
    asked_as, generation, error = F.col(f"{at}asked_as"), F.col(f"{at}generation"), F.col(f"{at}error")
    by_rule = F.when(F.col(f"{at}rule_id").isNotNull(), " by a rule of the test").otherwise("")
    result = F.concat(F.when(error == OK, "OK").otherwise(error), by_rule)
    return F.concat(
        F.lit("#"),
        F.col(f"{at}seq"),
        F.lit(" "),
        f"{at}api",
        F.coalesce(F.concat(F.lit(" v"), f"{at}api_version"), F.lit("")),
        F.lit(" from "),
        name,
        F.when(asked_as != name, F.concat(F.lit(" as member "), asked_as)).otherwise(""),
        F.when(generation != -1, F.concat(F.lit(" (generation "), generation, F.lit(")"))).otherwise(""),
        F.lit(" -> "),
        F.when(error.isNull(), "no response yet").otherwise(result),
    )


def _unless_empty(name: str) -> Column:
    return F.when(F.col(name) != "", F.col(name))


def join_text(*parts: Column | str) -> Column:
    """Concatenate strings and columns."""
    return F.concat(*(F.lit(part) if isinstance(part, str) else part for part in parts))


def seconds(ms: Column, *, roughly: bool = False) -> Column:
    """Format milliseconds as seconds, with up to three decimals, or `roughly` with about three digits."""
    value = ms.cast("double") / 1000
    exact = F.format_string("%.3f", value)
    if roughly:
        exact = F.when(value < 1, exact).when(value < 10, F.format_string("%.2f", value))  # noqa: PLR2004 - digits
        exact = exact.when(value < 100, F.format_string("%.1f", value)).otherwise(F.format_string("%.0f.0", value))  # noqa: PLR2004
    return F.regexp_replace(exact, r"\.?0+$", "")


def between_ms(earlier: tuple[str, str], later: tuple[str, str]) -> Column:
    """Return the time between two (wall, group) times by the slower of the two clocks, in milliseconds.

    A jump of the group's clock takes no time of a client, and no client is late while the group's clock stands still.
    """
    return F.coalesce(F.least(*_both_us(earlier, later)), F.lit(0)) / 1000


def at_least_ms(earlier: tuple[str, str], later: tuple[str, str]) -> Column:
    """Return the time between two (wall, group) times by the faster of the two clocks, in milliseconds."""
    return F.coalesce(F.greatest(*_both_us(earlier, later)), F.lit(0)) / 1000


def _both_us(earlier: tuple[str, str], later: tuple[str, str]) -> list[Column]:
    return [F.col(after) - F.col(before) for before, after in zip(earlier, later, strict=True)]


def after(*by: str) -> WindowSpec:
    """Return a window of the rows with a greater `at`, for `last`.

    It is descending, because Spark evaluates a frame that ends at the last row once for every row.
    """
    return Window.partitionBy(*by).orderBy(F.desc("at")).rowsBetween(Window.unboundedPreceding, -1)
