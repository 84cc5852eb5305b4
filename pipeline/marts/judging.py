"""How checks look at calls, and put down what they find.

A check is a function `Story -> DataFrame` of *findings*, made with `found`: what is right, what is wrong, and what
cannot be said, each with the events that show it. In a text `{name}` and `{software}` stand for the member's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

GROUP = ("trace_id", "group_id")

OK = "NONE"
"""The error of an answer that says all went well."""

PASS, FAIL, INCONCLUSIVE, NOT_APPLICABLE = "pass", "fail", "inconclusive", "not_applicable"


def found(  # noqa: PLR0913 - all but three are by name
    frame: DataFrame,
    status: Column | str,
    first: Column | str,
    last: Column | str | None = None,
    *,
    text: Column | None = None,
    member: Column | str | None = None,
    n: Column | str | None = None,
) -> DataFrame:
    """Findings: `status` of each row is PASS, FAIL or INCONCLUSIVE; a row without one finds nothing.

    `first` and `last` are sequence numbers, `text` is wanted of what is not right, `member` the member id it is about,
    `n` for how many a row stands, if not for one.
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


def _column(what: Column | str) -> Column:
    return F.col(what) if isinstance(what, str) else what


def said(call: str = "") -> Column:
    """A call for people: `#12 JoinGroup v9 from a as member a-1 (generation 1) -> OK`. `call` names a struct."""
    at = f"{call}." if call else ""
    name = F.coalesce(f"{at}instance_id", _unless_empty(f"{at}client_id"), f"{at}member_id", F.lit(""))
    asked_as, generation, error = F.col(f"{at}asked_as"), F.col(f"{at}generation"), F.col(f"{at}error")
    by_rule = F.when(F.col(f"{at}rule_id").isNotNull(), " by a rule of the test").otherwise("")
    told = F.concat(F.when(error == OK, "OK").otherwise(error), by_rule)
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
        F.when(error.isNull(), "no response yet").otherwise(told),
    )


def _unless_empty(name: str) -> Column:
    return F.when(F.col(name) != "", F.col(name))


def texts(*parts: Column | str) -> Column:
    """Strings and columns after one another."""
    return F.concat(*(F.lit(part) if isinstance(part, str) else part for part in parts))


def seconds(ms: Column, *, roughly: bool = False) -> Column:
    """Milliseconds as seconds, to three places; or, `roughly`, to about three digits. No zeros at the end."""
    value = ms.cast("double") / 1000
    exact = F.format_string("%.3f", value)
    if roughly:
        exact = F.when(value < 1, exact).when(value < 10, F.format_string("%.2f", value))  # noqa: PLR2004 - digits
        exact = exact.when(value < 100, F.format_string("%.1f", value)).otherwise(F.format_string("%.0f.0", value))  # noqa: PLR2004
    return F.regexp_replace(exact, r"\.?0+$", "")


def between_ms(earlier: tuple[str, str], later: tuple[str, str]) -> Column:
    """How much time has passed by the wall's clock and by the group's, the lesser of the two; both are (wall, group).

    A jump of the group's clock takes no time of a client, and a group whose clock stands still lets nobody be late.
    """
    return F.coalesce(F.least(*_both_us(earlier, later)), F.lit(0)) / 1000


def at_least_ms(earlier: tuple[str, str], later: tuple[str, str]) -> Column:
    """The same, the greater of the two."""
    return F.coalesce(F.greatest(*_both_us(earlier, later)), F.lit(0)) / 1000


def _both_us(earlier: tuple[str, str], later: tuple[str, str]) -> list[Column]:
    return [F.col(after) - F.col(before) for before, after in zip(earlier, later, strict=True)]


def after(*by: str) -> WindowSpec:
    """The rows with a greater `at`, for `last`. Backwards: a frame that ends at the last row is made anew for each."""
    return Window.partitionBy(*by).orderBy(F.desc("at")).rowsBetween(Window.unboundedPreceding, -1)
