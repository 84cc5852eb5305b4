"""Sweeps: a grid of cells with seeds, and the row of each run. A row is a plain function of its cell.

So the rows may be computed anywhere, in any order: the same cell gives the same record, and `digest` shows that.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from hashlib import sha256
from itertools import product
from typing import TYPE_CHECKING

from koordinator.emulator.config.suggest import unknown

from .cells import Cell, record_of
from .figures import Figures, figures_of
from .load import Load
from .schemes import SCHEMES
from .situations import SITUATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from .cells import CellResult

PARTITIONS_PER_MEMBER = 4
"""The default number of partitions."""

AXES: Mapping[str, type] = {"scheme": str, "situation": str} | {
    each.name: type(each.default) for each in fields(Load) if each.name not in {"seed", "kafka_version", "config"}
}
"""The axes of a grid with the types of their values."""

RUN_COLUMNS: Mapping[str, type] = {
    **dict.fromkeys(("cell", "scheme", "situation"), str),
    "seed": int,
    **{each.name: float if "float" in str(each.type) else int for each in fields(Figures)},
    **dict.fromkeys(("digest", "error"), str),
}
"""The columns of a table of runs, with their types. `error` is null unless the run failed."""


def arrow_schema() -> pa.Schema:
    """Return the schema of a table of runs. Raises ImportError without the extra `spark`."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return pa.schema([(name, types[kind]) for name, kind in RUN_COLUMNS.items()])


def parse_axis(text: str) -> tuple[str, list[object]]:
    """Return the name and the values of an axis such as `members=10,100`. Raises ValueError."""
    name, equals, values = text.partition("=")
    if name not in AXES:
        raise ValueError(unknown("axis", name, AXES))
    known = {"scheme": SCHEMES, "situation": SITUATIONS}.get(name)
    parsed: list[object] = []
    for value in values.split(",") if equals else ():
        if known is not None and value not in known:
            raise ValueError(unknown(name, value, known))
        try:
            parsed.append(AXES[name](value))
        except ValueError:
            raise ValueError(f"{name}={value}: must be a number") from None
    if not parsed:
        raise ValueError(f"{text!r}: expected NAME=VALUE,VALUE")
    return name, parsed


def cells_of(grid: Mapping[str, Sequence[object]], seeds: int) -> Iterator[Cell]:
    """Yield the cells of a grid, each with the seeds from 1 on; a grid without schemes or situations has all of them.

    Raises ValueError for a value that no load has.
    """
    axes = {"scheme": tuple(SCHEMES), "situation": tuple(SITUATIONS), **grid}
    for values in product(*axes.values()):
        load = dict(zip(axes, values, strict=True))
        scheme, situation = str(load.pop("scheme")), str(load.pop("situation"))
        load.setdefault("partitions", PARTITIONS_PER_MEMBER * int(str(load.get("members", Load().members))))
        for seed in range(1, seeds + 1):
            yield Cell(scheme, situation, Load(**load, seed=seed))  # type: ignore[arg-type]


def key_of(cell: Cell) -> str:
    """Return a cell as JSON: equal texts for equal cells."""
    return json.dumps(asdict(cell), sort_keys=True)


def cell_of(key: str) -> Cell:
    """Return the cell of a key."""
    data = json.loads(key)
    config = tuple((name, value) for name, value in data["load"].pop("config"))
    return Cell(data["scheme"], data["situation"], Load(**data["load"], config=config))


def row_of(key: str) -> dict[str, object]:
    """Play the cell of a key, and return its row: the cell, its figures, and a digest of its record.

    A run that fails has its error instead: the others go on.
    """
    cell = cell_of(key)
    names = _names(cell)
    try:
        record, end_ms = record_of(cell)
        figures = asdict(figures_of(record, cell.load, end_ms))
    except Exception as error:  # noqa: BLE001 - one run must not stop the sweep
        return {**names, "error": f"{type(error).__name__}: {error}"}
    facts = [
        [fact.at_ms, fact.kind.value, fact.member, sorted(fact.partitions), fact.is_clean] for fact in record.facts
    ]
    return {**names, **figures, "digest": sha256(json.dumps(facts).encode()).hexdigest()}


def rows_of(results: Iterable[CellResult]) -> Iterator[dict[str, object]]:
    """Yield the row of each run of these results, without its digest."""
    for result in results:
        for seed, figures in enumerate(result.figures, result.cell.load.seed):
            cell = replace(result.cell, load=replace(result.cell.load, seed=seed))
            yield {**_names(cell), **asdict(figures)}


def _names(cell: Cell) -> dict[str, object]:
    return {"cell": key_of(cell), "scheme": cell.scheme, "situation": cell.situation, "seed": cell.load.seed}
