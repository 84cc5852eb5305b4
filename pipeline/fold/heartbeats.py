"""Regular heartbeats leave the fold: of a run of them only the first and the last remain.

Most events are successful heartbeats, and the fold takes ten times as long for one as it takes to leave it out. The
heartbeats of a run have equal verdicts: it is broken by every other event of its connection but successful commits, by
joins, syncs, and changes of the group or its members, and by the stop or move of a node. Of the heartbeats left out
only the latency is lost, which a client's waiting time would exclude.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from koordinator.emulator.verify.member_checks import STORM_MS

from .event_lines import parsed_body

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEVER_US = float("-inf")
"""The limit of a group all of whose heartbeats remain."""


class Heartbeats:
    """Leaves the regular heartbeats out of one trace, whose events come in parts; a run ends with its part.

    A heartbeat is regular if it and the next one come more than STORM_MS and less than half of the group's shortest
    session timeout after their predecessors. All heartbeats remain of groups whose coordinator moved, because C02
    judges the first request after a time.
    """

    def __init__(self) -> None:
        self._limits_us: dict[str | None, float] = {}
        """Half of each group's shortest session timeout so far."""

    def shortened(self, events: pa.Table) -> pa.Table:
        """Return the events of the next part, which are in the order of `seq`, without the regular heartbeats.

        `count` is the number of heartbeats that a remaining request stands for.
        """
        self._learn(events)
        requests, responses, breaks = _pairs(events)
        groups = events["group_id"].combine_chunks().dictionary_encode()
        group = _numbers(groups.indices)
        limits = np.array([self._limits_us.get(name, np.nan) for name in [*groups.dictionary.to_pylist(), None]])
        changes = ~_among(events["kind"], "request", "response") | _among(
            events["api"], "JoinGroup", "SyncGroup", "LeaveGroup"
        )
        phase, moves = _sums_within(group, changes), np.cumsum(_among(events["kind"], "node", "leader"))
        member = _numbers(events["member_id"].combine_chunks().dictionary_encode().indices)
        of_asked = (group, _numbers(events["node"]), _numbers(events["conn_id"]), member)
        same = np.array(
            [
                *(column[requests] for column in (*of_asked, _numbers(events["generation"]), breaks)),
                *(column[line] for column in (phase, moves) for line in (requests, responses)),
            ]
        )
        order = np.lexsort((requests, *same))
        requests, responses, same = requests[order], responses[order], same[:, order]
        waits_us = [np.diff(_floats(events[clock])[requests]) for clock in ("wall_us", "group_us")]
        is_regular = np.zeros(len(requests) + 1, dtype=bool)
        is_regular[1:-1] = (
            (same[:, 1:] == same[:, :-1]).all(axis=0)
            & (np.fmax(*waits_us) > STORM_MS * 1000)
            & (np.fmin(*waits_us) < limits[group[requests[1:]]])
        )
        left_out = is_regular[:-1] & is_regular[1:]
        totals = np.cumsum(_numbers(events["count"], 1)[requests])[~left_out]
        kept, stands_for = requests[~left_out], np.diff(totals, prepend=0)
        counts, has_no_count = _numbers(events["count"]), events["count"].is_null().to_numpy()
        counts[kept], has_no_count[kept[stands_for > 1]] = stands_for, False
        remains = np.ones(len(events), dtype=bool)
        remains[requests[left_out]] = remains[responses[left_out]] = False
        count = pa.array(counts, pa.int64(), mask=has_no_count)
        return events.set_column(events.column_names.index("count"), "count", count).filter(pa.array(remains))

    def _learn(self, events: pa.Table) -> None:
        """Learn the session timeouts of the groups, and of which groups all heartbeats remain."""
        concerns = _among(events["api"], "JoinGroup") | _among(events["error"], "NOT_COORDINATOR")
        names = ["error", "group_id", "body"]
        for event in events.select(names).filter(pa.array(concerns)).to_pylist():
            if event["error"] == "NOT_COORDINATOR":
                limit_us = NEVER_US
            elif (session_ms := parsed_body(event["body"] or "").get("session_timeout_ms")) is None:
                continue
            else:
                limit_us = session_ms * 500
            group_id = event["group_id"]
            self._limits_us[group_id] = min(limit_us, self._limits_us.get(group_id, limit_us))


def _pairs(events: pa.Table) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the heartbeats with a successful response on the next line of their connection, and no rule for either.

    These are the lines of the requests, those of the responses, and for each line of the trace the number of lines of
    its connection so far that break a run: those that belong neither to such a heartbeat nor to a commit with the same
    properties.
    """
    node, connection = _numbers(events["node"]), _numbers(events["conn_id"])
    correlation, is_ruled = _floats(events["correlation_id"]), events["rule_id"].is_valid().to_numpy()
    is_heartbeat = _among(events["api"], "Heartbeat")
    is_heartbeat &= (_numbers(events["generation"]) >= 0) & (_numbers(pc.utf8_length(events["member_id"])) > 0)
    is_asked = _among(events["kind"], "request") & (is_heartbeat | _among(events["api"], "OffsetCommit")) & ~is_ruled
    is_granted = _among(events["kind"], "response") & events["error"].is_null().to_numpy() & ~is_ruled
    order = np.lexsort((connection, node))
    line, following = order[:-1], order[1:]
    is_pair = is_asked[line] & is_granted[following] & (correlation[line] == correlation[following])
    is_pair &= (node[line] == node[following]) & (connection[line] == connection[following])
    requests, responses = line[is_pair], following[is_pair]
    breaks = np.ones(len(events), dtype=bool)
    breaks[requests] = breaks[responses] = False
    counts = np.empty(len(events), dtype=np.int64)
    counts[order] = np.cumsum(breaks[order])
    of_heartbeat = is_heartbeat[requests]
    return requests[of_heartbeat], responses[of_heartbeat], counts


def _sums_within(group: NDArray[Any], marks: NDArray[Any]) -> NDArray[Any]:
    """Return for each line a number that grows with every mark in its group."""
    order = np.argsort(group, kind="stable")
    sums = np.empty(len(group), dtype=np.int64)
    sums[order] = np.cumsum(marks[order])
    return sums


def _among(column: pa.ChunkedArray, *values: str) -> NDArray[Any]:
    mask: NDArray[Any] = pc.is_in(column, pa.array(values)).to_numpy()
    return mask


def _numbers(column: pa.ChunkedArray | pa.Array, default: int = -1) -> NDArray[Any]:
    """Return a copy, with a default in place of nulls."""
    return np.array(pc.fill_null(column, default).to_numpy(), dtype=np.int64)


def _floats(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers with NaN in place of nulls; a double holds microseconds until the year 2255."""
    return np.array(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
