"""The gold tables by another engine, in its own process: duration, and comparison with the store.

Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from engines import duck, polar


def by_duckdb(store: Path) -> tuple[float, list[str]]:
    """Return seconds and differences."""
    with duck.connected(store) as connection:
        began = time.monotonic()
        duck.make(connection)
        seconds = time.monotonic() - began
        differences = [line for name in duck.MADE for line in duck.differences(connection, store, name, name)[1]]
    return seconds, differences


def by_polars(store: Path) -> tuple[float, list[str]]:
    """Return seconds and differences."""
    began = time.monotonic()
    made = polar.Made(store)
    # the streaming engine of Polars 2.1 hangs on the tables of 100 M events
    tables = {name: getattr(made, name)().collect(engine="in-memory") for name in duck.MADE}
    seconds = time.monotonic() - began
    differences = []
    with duck.connected(store) as connection:
        for name, table in tables.items():
            connection.register("made", table.to_arrow())
            differences += duck.differences(connection, store, name, "made")[1]
    return seconds, differences


ENGINES = {"duckdb": by_duckdb, "polars": by_polars}


def main() -> None:
    """Run the named engine."""
    name, store = sys.argv[1:]
    seconds, differences = ENGINES[name](Path(store))
    print(json.dumps({"seconds": seconds, "differences": differences}))


if __name__ == "__main__":
    main()
