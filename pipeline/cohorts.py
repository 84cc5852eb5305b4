"""Comparison of cohorts: the costs of rebalances by client version, commit or membership.

The samples are single rebalances, stops of single members, and traces. A difference of means has its 95 % interval
(Welch's, with the normal distribution: with fewer than about thirty rows it is too narrow).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .views import Query, Rows

BY = ("client_version", "commit", "membership")
"""The properties that define cohorts."""

SAMPLES = {
    "rounds": (
        *("join_ms", "sync_ms", "total_ms", "resume_ms", "straggler_wait_ms", "partitions_moved", "stickiness"),
    ),
    "stops": ("stopped_ms",),
    "traces": ("rebalances_per_trace",),
}
"""The metrics of each rebalance, of each member in a rebalance, and of each trace."""

CLIENT = "CASE WHEN client_software IS NOT NULL THEN concat_ws(' ', client_software, client_version) END"

COHORTS = {
    "client_version": {"name": CLIENT, "several": "several", "whole": "name", "round": "cohort", "stop": CLIENT},
    "commit": {"name": "''", "several": "several", "whole": "commit", "round": "cohort", "stop": "cohort"},
    "membership": {
        "name": "CASE WHEN is_static THEN 'static' ELSE 'dynamic' END",
        "several": "mixed",
        "whole": "name",
        "round": "membership",
        "stop": "membership",
    },
}
"""By property the cohorts of a member, of a group with several, of a group, of a rebalance, and of a stop."""

VALUES = """
    WITH named AS (
      SELECT trace_id, group_id, CASE WHEN count(DISTINCT name) > 1 THEN '{several}' ELSE max(name) END AS name
      FROM (SELECT trace_id, group_id, {name} AS name FROM silver.member WHERE first_seq IS NOT NULL) GROUP BY 1, 2),
    whole AS (
      SELECT trace_id, group_id, started_us, {whole} AS cohort FROM named JOIN silver.trace USING (trace_id)),
    rounds AS (
      SELECT *, coalesce({round}, 'unknown') AS its_cohort
      FROM gold.rebalance LEFT JOIN whole USING (trace_id, group_id)),
    stops AS (
      SELECT *, coalesce({stop}, 'unknown') AS its_cohort
      FROM gold.member_downtime LEFT JOIN whole USING (trace_id, group_id)),
    traces AS (
      SELECT trace_id, started_us, coalesce(cohort, 'unknown') AS its_cohort,
             coalesce(sum(n), 0) AS rebalances_per_trace
      FROM whole LEFT JOIN (SELECT trace_id, group_id, count(*) AS n FROM gold.rebalance GROUP BY 1, 2)
                 USING (trace_id, group_id)
      GROUP BY 1, 2, 3),
    sample AS ({samples})
"""
"""The rows of `sample`: metric, cohort, value, and the start of the trace."""

SAMPLE = (
    "SELECT '{metric}' AS metric, its_cohort AS cohort, CAST({metric} AS DOUBLE) AS value, started_us"
    " FROM {rows} WHERE {metric} IS NOT NULL"
)

FIRST_SEEN = "SELECT cohort FROM sample GROUP BY cohort ORDER BY min(started_us), cohort"

COMPARISON = """,
    cohorts AS (
      SELECT metric, cohort, count(*) AS n, avg(value) AS mean, percentile(value, 0.5) AS median,
             percentile(value, 0.95) AS p95, var_samp(value) AS variance
      FROM sample GROUP BY 1, 2),
    differing AS (
      SELECT one.*, CASE WHEN one.cohort != :baseline THEN one.mean - base.mean END AS difference,
             1.959964 * sqrt(one.variance / one.n + base.variance / base.n) AS reach
      FROM cohorts AS one LEFT JOIN cohorts AS base ON one.metric = base.metric AND base.cohort = :baseline)
    SELECT metric, cohort, n, mean, median, p95, difference, difference - reach AS low, difference + reach AS high
    FROM differing ORDER BY metric, cohort != :baseline, cohort
"""


def cohort_names(query: Query, by: str) -> list[str]:
    """Return the cohorts by one of BY, in the order in which they first occur. Rows without one are `unknown`."""
    return [row["cohort"] for row in query(_values(by) + FIRST_SEEN)]


def compare_cohorts(query: Query, by: str, baseline: str) -> Rows:
    """Return n, mean, median, p95 and the difference to the baseline, by cohort and metric."""
    return query(_values(by) + COMPARISON, baseline=baseline)


def _values(by: str) -> str:
    samples = " UNION ALL ".join(
        SAMPLE.format(metric=metric, rows=rows) for rows, metrics in SAMPLES.items() for metric in metrics
    )
    return VALUES.format(**COHORTS[by], samples=samples)
