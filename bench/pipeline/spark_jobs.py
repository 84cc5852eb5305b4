"""What the benchmark has Spark do, each in a process of its own: `replicate` makes a tier, `load` loads it.

They print one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from koordinator.pipeline import session
from koordinator.pipeline.loading import Loader
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROWS_PER_FILE = 1_000_000
MAX_BAD_RATIO = 0.0
"""What was generated has no bad rows."""


def replicated(events: DataFrame, first: int, copies: int, files: int) -> DataFrame:
    """So many copies of traces, with fresh ids of traces, runs and groups, numbered from `first` on."""
    numbers = events.sparkSession.range(first, first + copies, 1, files).withColumnRenamed("id", "copy")
    # one copy after the other: the lines of a trace stay together
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
            # the header, as a whole
            named = F.regexp_replace("body", r'("run_id":"[^"]*)"', F.concat(F.lit("$1"), suffix, F.lit('"')))
            return F.when(F.col("kind") == "header", named).otherwise(F.col("body"))
        case _:
            return F.col(name)


def replicate(source: str, target: str, first: int, copies: int) -> dict[str, object]:
    """Write the copies of what is in a folder to another."""
    with session.opened(big=True) as spark:
        events = spark.read.parquet(source)
        rows = events.count() * copies
        made = replicated(events, first, copies, min(copies, math.ceil(rows / ROWS_PER_FILE)))
        made.write.mode("append").parquet(target)
        return {"rows": rows}


def load(master: str, source: str, target: str) -> dict[str, object]:
    """Load what is new in a folder into a store; seconds for each thing that is done."""
    began = time.monotonic()
    marks: list[tuple[str, float]] = []
    with session.opened(master, big=True) as spark:
        marks.append(("start", time.monotonic()))
        loader = Loader(spark, Store(target), lambda what: marks.append((what, time.monotonic())), MAX_BAD_RATIO)
        loaded = loader.load([source])
        marks.append(("end", time.monotonic()))
    steps: dict[str, float] = {}
    for (what, at), (_, until) in pairwise(marks):
        steps[what] = steps.get(what, 0) + until - at
    return {
        "events": loaded.rows("event"),
        "start_s": marks[0][1] - began,
        "load_s": marks[-1][1] - marks[0][1],
        "steps": steps,
    }


def main() -> None:
    """Do one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="job", required=True)
    job = kinds.add_parser("replicate")
    job.add_argument("source")
    job.add_argument("target")
    job.add_argument("first", type=int)
    job.add_argument("copies", type=int)
    job = kinds.add_parser("load")
    job.add_argument("master")
    job.add_argument("source")
    job.add_argument("target")
    given = vars(parser.parse_args())
    jobs = {"replicate": replicate, "load": load}
    print(json.dumps(jobs[given.pop("job")](**given)))


if __name__ == "__main__":
    main()
