"""The same gold tables by another engine, in a process of its own: how long that takes, and whether they are equal.

It prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from brokers.docker_cli import duck, polar


def by_duckdb(store: Path) -> tuple[float, list[str]]:
    """Seconds, and what is different."""
    with duck.connected(store) as connection:
        began = time.monotonic()
        duck.make(connection)
        seconds = time.monotonic() - began
        found = [line for name in duck.MADE for line in duck.differences(connection, store, name, name)[1]]
    return seconds, found


def by_polars(store: Path) -> tuple[float, list[str]]:
    """Likewise."""
    began = time.monotonic()
    made = polar.Made(store)
    tables = {name: getattr(made, name)().collect() for name in duck.MADE}
    seconds = time.monotonic() - began
    found = []
    with duck.connected(store) as connection:
        for name, table in tables.items():
            connection.register("made", table.to_arrow())
            found += duck.differences(connection, store, name, "made")[1]
    return seconds, found


ENGINES = {"duckdb": by_duckdb, "polars": by_polars}


def main() -> None:
    """Let the engine that is named make its tables."""
    name, store = sys.argv[1:]
    seconds, found = ENGINES[name](Path(store))
    print(json.dumps({"seconds": seconds, "differences": found}))


if __name__ == "__main__":
    main()
