"""The benchmark's Spark jobs, each in its own process: `replicate` makes a tier, `load` loads it.

They print one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from koordinator.pipeline import layers, session
from koordinator.pipeline.jobs.run import spark_if_needed
from koordinator.pipeline.loading import Loader
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

ROWS_PER_FILE = 1_000_000
MAX_BAD_RATIO = 0.0
"""Generated input has no bad rows."""

CLUSTER_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.executor.memory": "3g",
}
"""Settings on a cluster of this machine, whose workers have 4 GiB each."""


def replicated(events: DataFrame, first: int, copies: int, files: int) -> DataFrame:
    """Return copies of traces with fresh trace, run and group ids, numbered from `first` on."""
    numbers = events.sparkSession.range(first, first + copies, 1, files).withColumnRenamed("id", "copy")
    # one copy after the other keeps the lines of a trace together
    copied = numbers.join(F.broadcast(events), how="cross")
    return copied.select(*(_fresh(name).alias(name) for name in events.columns))


def _fresh(name: str) -> Column:
    suffix = F.concat(F.lit("-"), F.col("copy").cast("string"))
    match name:
        case "trace_id":
            return F.substring(F.md5(F.concat("trace_id", suffix)), 1, 16)
        case "group_id":
            return F.concat("group_id", suffix)
        case "body":
            # the whole header
            named = F.regexp_replace("body", r'("run_id":"[^"]*)"', F.concat(F.lit("$1"), suffix, F.lit('"')))
            return F.when(F.col("kind") == "header", named).otherwise(F.col("body"))
        case _:
            return F.col(name)


def replicate(source: str, *parts: str) -> dict[str, object]:
    """Write copies of a folder to others; each of `parts` names the folder, the first copy, and their number."""
    with session.open_session(big=True) as spark:
        events = spark.read.parquet(source)
        rows = events.count()
        for target, first, copies in zip(parts[::3], map(int, parts[1::3]), map(int, parts[2::3]), strict=True):
            files = min(copies, math.ceil(rows * copies / ROWS_PER_FILE))
            replicated(events, first, copies, files).write.parquet(target)
        return {"rows": rows}


def load(master: str, target: str, *sources: str) -> dict[str, object]:
    """Load new input of some folders into a store, by Spark if it is large; return the seconds of each step."""
    marks = [("begin", time.monotonic())]
    report_progress = lambda what: marks.append((what, time.monotonic()))  # noqa: E731
    settings = {} if master.startswith("local") else CLUSTER_SETTINGS
    with spark_if_needed({"master": master, "remote": None, "settings": settings}) as (open_spark, on_cluster):

        def opened() -> SparkSession:
            report_progress("start")
            spark = open_spark()
            report_progress("reading")
            return spark

        loaded = Loader(opened, Store(target), report_progress, MAX_BAD_RATIO, on_cluster=on_cluster).load(sources)
        report_progress("end")
    if not loaded.rows("event"):
        raise SystemExit(f"no event was read of {', '.join(sources)}: there is nothing to be measured")
    steps: dict[str, float] = {}
    for (what, at), (_, until) in pairwise(marks):
        steps[what] = steps.get(what, 0) + until - at
    start_s = steps.pop("start", 0.0)
    return {
        "events": loaded.rows("event"),
        "start_s": start_s,
        "load_s": sum(steps.values()),
        "tables_s": sum(steps[step.table.path] for step in layers.PER_HOME_STEPS),
        "steps": steps,
    }


JOBS: dict[str, Callable[..., dict[str, object]]] = {"replicate": replicate, "load": load}


def main() -> None:
    """Run one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("of_it", nargs="+")
    given = parser.parse_args()
    print(json.dumps(JOBS[given.job](*given.of_it)))


if __name__ == "__main__":
    main()
