"""The content of the pages: lines, the overview of the groups, and the drawing of one group or of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..trace.vocabulary import METADATA_KINDS
from .lanes import Lanes
from .overview import Overview
from .replay import source_of_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from koordinator.trace.exchanges import Line


class Feed:
    """The feed of the live page, which watches one group: lines in, changes of the page out."""

    def __init__(self, watched: str) -> None:
        self._watched = watched
        self._lanes, self._overview = Lanes(watched), Overview()

    def take(self, lines: Sequence[Line]) -> dict[str, Any]:
        """Return what further lines change: the lines of the group and of none, and rows (`lanes`, `overview`)."""
        for line in lines:
            self._overview.add(line)
            self._lanes.add(line.get("seq", 0), line)
        shown = [line for line in lines if line.get("group_id", self._watched) == self._watched]
        group = self._lanes.groups.get(self._watched)
        return {"lines": shown, "groups": self._overview.take(), "rows": self._lanes.take(group) if group else []}


def drawn(lines: Iterable[Line]) -> dict[str, Any]:
    """Return the overview of a trace, and the rows and the test of each group, the most active group first."""
    lanes, overview = Lanes(), Overview()
    for line in lines:
        if line["kind"] not in METADATA_KINDS:
            overview.add(line)
            lanes.add(line["seq"], line)
    # a group without members has only requests of tools
    order = sorted(lanes.groups.values(), key=lambda group: (not group.lanes, -group.n_events))
    drawings = {group.id: {"rows": lanes.take(group), "test": source_of_test(group)} for group in order}
    return {"groups": overview.take(), "drawings": drawings}


def source_for(lines: Iterable[Line], group_id: str) -> str:
    """Return the source of a test of one group's members; raise ValueError if the trace does not have the group."""
    lanes = Lanes(group_id)
    for line in lines:
        if line["kind"] not in METADATA_KINDS:
            lanes.add(line["seq"], line)
    if group_id not in lanes.groups:
        raise ValueError(f"the trace has no group {group_id!r}")
    return source_of_test(lanes.groups[group_id])
