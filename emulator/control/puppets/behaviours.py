"""Puppet behaviours: correct, manual, or one of the faults that groups suffer from.

* `healthy`: like Java's consumer; rejoins as soon as a heartbeat reports a rebalance.
* `manual`: sends nothing by itself; each call of a test sends one request, and responses only update its state.
* `straggler` (`delay_s` 5): healthy, but rejoins only `delay_s` after it learned of a rebalance; it keeps sending
  heartbeats.
* `flapping` (`every_s` 10): leaves `every_s` after each assignment and returns after the same time.
* `silent`: joins, receives its assignment, and then sends nothing more.
* `never_syncs`: healthy, but as leader it never sends SyncGroup, so that no member gets an assignment.
* `omits_members` (`members` 1): healthy, but as leader it omits that number of members from the assignment.
* `eager_only`: healthy, but offers only eager protocols.
* `duplicate_instance_id` (`restart_s` 1): healthy, with an instance id that another member uses; after it is fenced or
  refused it restarts, like a process under a process manager.
* `never_revokes`: healthy, but keeps the partitions that it has to give up, and acknowledges nothing meanwhile.

`never_syncs`, `omits_members` and `eager_only` are those of the classic protocol, `never_revokes` that of the consumer
protocol (KIP-848), in which a `straggler` gives partitions up late. All durations are in group time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

from ...config.suggest import UnknownWord, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.wire.messages.join_group import JoinGroupResponseMember

HEALTHY, MANUAL, STRAGGLER, FLAPPING, SILENT = "healthy", "manual", "straggler", "flapping", "silent"
NEVER_SYNCS, OMITS_MEMBERS, EAGER_ONLY = "never_syncs", "omits_members", "eager_only"
DUPLICATE_INSTANCE_ID, NEVER_REVOKES = "duplicate_instance_id", "never_revokes"

PARAMETERS: Mapping[str, tuple[str, float] | None] = {
    HEALTHY: None,
    MANUAL: None,
    STRAGGLER: ("delay_s", 5),
    FLAPPING: ("every_s", 10),
    SILENT: None,
    NEVER_SYNCS: None,
    OMITS_MEMBERS: ("members", 1),
    EAGER_ONLY: None,
    DUPLICATE_INSTANCE_ID: ("restart_s", 1),
    NEVER_REVOKES: None,
}
"""Behaviour kinds with the name and default of their parameter, if they have one."""

ONLY_CLASSIC, ONLY_CONSUMER = (NEVER_SYNCS, OMITS_MEMBERS, EAGER_ONLY), (NEVER_REVOKES,)
"""The behaviour kinds of one protocol alone (`group.protocol`)."""

NOT_OF_OTHERS = (*ONLY_CLASSIC, *ONLY_CONSUMER, STRAGGLER, DUPLICATE_INSTANCE_ID)
"""The behaviour kinds that members of share groups lack: they wait for no revocation, and are never static."""


@value
class Behaviour:
    """A behaviour kind with its parameter, in the unit of the parameter's name (see PARAMETERS)."""

    kind: str
    parameter: float = 0

    @property
    def delay_ms(self) -> int:
        """The parameter of a kind with a duration, in milliseconds."""
        return round(self.parameter * 1000)

    def omitted(self, members: Iterable[JoinGroupResponseMember], leader_id: str) -> list[str]:
        """Return the ids of the members that a leader of kind `omits_members` omits: the last ones by label."""
        if self.kind != OMITS_MEMBERS:
            return []
        others = sorted(
            (member.group_instance_id or member.member_id, member.member_id)
            for member in members
            if member.member_id != leader_id
        )
        return [member_id for _, member_id in others[-int(self.parameter) :]]

    def plain(self) -> dict[str, object]:
        """Return the behaviour as JSON data."""
        parameter = PARAMETERS[self.kind]
        return {"kind": self.kind} if parameter is None else {"kind": self.kind, parameter[0]: self.parameter}


def behaviour_of(data: str | Mapping[str, object]) -> Behaviour:
    """Parse a behaviour: its kind, or a mapping with `kind` and the parameter.

    Raise ValueError for an unknown kind or an invalid parameter.
    """
    parameters = {"kind": data} if isinstance(data, str) else dict(data)
    kind = str(parameters.pop("kind", ""))
    if kind not in PARAMETERS:
        raise UnknownWord(
            f"behaviour {kind!r} is not known{did_you_mean(kind, PARAMETERS)}; known: {', '.join(PARAMETERS)}"
        )
    parameter = PARAMETERS[kind]
    if parameter is None:
        if parameters:
            raise ValueError(f"behaviour {kind!r} has no parameters; remove {', '.join(map(repr, parameters))}")
        return Behaviour(kind)
    name, default = parameter
    value = parameters.pop(name, default)
    if parameters:
        raise ValueError(f"behaviour {kind!r} has only the parameter {name!r}, not {', '.join(map(repr, parameters))}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"behaviour {kind!r}: {name} must be a number above 0, not {value!r}")
    return Behaviour(kind, value)
