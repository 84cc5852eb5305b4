"""Rows of a trace line's body that Polars cannot decode: lists of unequal values, and maps with free keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from polars._typing import PolarsDataType

SPAN = pl.Struct(
    {
        "topic": pl.String,
        "partition": pl.Int32,
        "first_offset": pl.Int64,
        "last_offset": pl.Int64,
        "rest": pl.List(pl.String),
    }
)
"""A range of a partition's records, and what a line says about it: counts, words, states."""

TASK = pl.Struct({"type": pl.String, "subtopology": pl.String, "partition": pl.Int32})


def spans(name: str) -> pl.Expr:
    """Return the ranges of records under a name of the body; null if there are none."""
    return _decoded(name, SPAN, _spans)


def places(name: str) -> pl.Expr:
    """Return the partitions under a name of the body as texts, `topic-partition`; null if there are none."""
    return _decoded(name, pl.String, lambda rows: (f"{topic}-{partition}" for topic, partition, *_ in rows))


def tasks() -> pl.Expr:
    """Return the tasks of the body; null unless it has any assignment."""
    return _decoded("tasks", TASK, _tasks)


def _decoded(name: str, kind: PolarsDataType, decode: Callable[[Any], Iterable[object]]) -> pl.Expr:
    def decoded(body: str) -> list[object] | None:
        found = json.loads(body).get(name)
        return None if found is None else list(decode(found))

    return pl.col("body").map_elements(decoded, return_dtype=pl.List(kind))


def _spans(found: list[Any]) -> Iterator[dict[str, object]]:
    rows = found if not found or isinstance(found[0], list) else [found]
    for topic, partition, first, last, *rest in rows:
        yield {
            "topic": topic,
            "partition": partition,
            "first_offset": first,
            "last_offset": last,
            "rest": list(map(str, _flat(rest))),
        }


def _flat(rest: Iterable[Any]) -> Iterator[object]:
    for each in rest:
        yield from each if isinstance(each, list) else (each,)


def _tasks(of: dict[str, dict[str, list[int]]]) -> Iterator[dict[str, object]]:
    for kind, subtopologies in of.items():
        for subtopology, partitions in subtopologies.items():
            for partition in partitions:
                yield {"type": kind, "subtopology": subtopology, "partition": partition}
