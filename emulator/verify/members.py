"""Assertions about the members of a group: leaving, fencing.

A member's name is its `group.instance.id`, its member id or its client id; a name covers every member that had it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import require_known

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Line

    from .group_trace import GroupTrace

FENCED = "FENCED_INSTANCE_ID"


def member_ids_of(trace: GroupTrace, name: str, members: tuple[str, ...] = ()) -> set[str]:
    """Return the member ids that a name covers. `members` adds ids that the trace may lack.

    Raises ValueError with the closest match if no member of the group ever had that name.
    """
    ids = {line["member_id"] for line in trace.group_lines if line["kind"] == "member"}
    ids |= {*trace.by_member, *members}
    known = {*ids, *trace.instances.values(), *(client for client in trace.clients.values() if client)}
    require_known(f"in group {trace.group_id!r} the member", name, sorted(known))
    return {each for each in ids if name in (each, trace.instances.get(each), trace.clients.get(each))}


def removals(trace: GroupTrace, ids: set[str]) -> list[Line]:
    """Return the lines in which the coordinator removed or replaced one of the members."""
    changes = (line for member_id in ids for line in trace.member_changes.get(member_id, ()))
    return sorted(
        (line for line in changes if line.get("change") in ("removed", "replaced")), key=lambda line: int(line["seq"])
    )


def check_left(trace: GroupTrace, name: str) -> tuple[bool, str]:
    """Return whether a member left by LeaveGroup, and a message if it did not."""
    ids = member_ids_of(trace, name)
    removed = removals(trace, ids)
    if any(line.get("cause") == "member_leave" for line in removed):
        return True, ""
    failure = f"member {name} has not left"
    if removed:
        last = removed[-1]
        return False, f"{failure}: it was {last['change']}, {last.get('cause')} (#{last['seq']}: {last.get('reason')})"
    leaves = [each for each in trace.exchanges if each.api == "LeaveGroup" and each.member_id in ids]
    if leaves:
        return False, f"{failure}: its LeaveGroup failed: {leaves[-1]}"
    closed = [
        trace.closed[connection]
        for connection in {exchange.connection for each in ids for exchange in trace.by_member.get(each, ())}
        if connection in trace.closed
    ]
    closing = f"; its connection was closed (#{closed[-1]['seq']})" if closed else ""
    return False, f"{failure}: it sent no LeaveGroup and was not removed{closing}"


def check_did_not_leave(trace: GroupTrace, name: str) -> tuple[bool, str]:
    """Return whether no LeaveGroup named a member, and a message if one did."""
    ids = member_ids_of(trace, name)
    for exchange in trace.exchanges:
        if exchange.api == "LeaveGroup" and (
            exchange.member_id in ids or name in (exchange.instance_id, exchange.client_id)
        ):
            return False, f"member {name} sent a LeaveGroup: {exchange}"
    for line in removals(trace, ids):
        if line.get("cause") == "member_leave":
            return False, f"member {name} was removed by a LeaveGroup: #{line['seq']} {line.get('reason')}"
    return True, ""


def check_fenced(trace: GroupTrace, instance_id: str) -> tuple[bool, str]:
    """Return whether a member of this instance received FENCED_INSTANCE_ID, and a message if none did.

    Any name of a static member stands for its instance.
    """
    instances = {trace.instances[each] for each in member_ids_of(trace, instance_id) if each in trace.instances}
    if not instances:
        static = ", ".join(sorted(set(trace.instances.values()))) or "none"
        raise ValueError(f"member {instance_id!r} of group {trace.group_id!r} is dynamic; static members: {static}")
    ids = {member_id for member_id, name in trace.instances.items() if name in instances}
    exchanges = [each for each in trace.exchanges if each.instance_id in instances or each.member_id in ids]
    if any(exchange.error == FENCED for exchange in exchanges):
        return True, ""
    failure = f"no member of instance {instance_id} received {FENCED}"
    replaced = [line for line in removals(trace, ids) if line["change"] == "replaced"]
    if not replaced:
        return False, f"{failure}: no new member replaced it"
    last = replaced[-1]
    later = [each for each in exchanges if each.request_member_id == last["member_id"] and each.seq > last["seq"]]
    if not later:
        return False, f"{failure}: #{last['seq']} {last.get('reason')}, and {last['member_id']} sent no request since"
    return False, f"{failure}: #{last['seq']} {last.get('reason')}; its last request since: {later[-1]}"
