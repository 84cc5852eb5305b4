"""Who was a member of a group, who left it, and who was fenced.

A member may be named by its `group.instance.id`, its member id or its client id; a name stands for all that had it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import checked

if TYPE_CHECKING:
    from .story import Line, Story

FENCED = "FENCED_INSTANCE_ID"


def named(story: Story, name: str, members: tuple[str, ...] = ()) -> set[str]:
    """The member ids that a name stands for. `members` are ids that are known from elsewhere.

    Raises ValueError if nobody in the group ever had that name, with the nearest one.
    """
    ids = {line["member_id"] for line in story.own if line["kind"] == "member"} | set(story.by_member) | set(members)
    known = {*ids, *story.instances.values(), *(client for client in story.clients.values() if client)}
    checked(f"in group {story.group_id!r} the member", name, sorted(known))
    return {each for each in ids if name in (each, story.instances.get(each), story.clients.get(each))}


def departures(story: Story, ids: set[str]) -> list[Line]:
    """The lines that say one of them was taken out of the group, or replaced."""
    return [
        line
        for line in story.own
        if line["kind"] == "member" and line.get("change") in ("removed", "replaced") and line["member_id"] in ids
    ]


def left(story: Story, name: str) -> tuple[bool, str]:
    """Whether a member has left by LeaveGroup; and what became of it if it has not."""
    ids = named(story, name)
    gone = departures(story, ids)
    if any(line.get("cause") == "member_leave" for line in gone):
        return True, ""
    said = f"member {name} has not left"
    if gone:
        last = gone[-1]
        return False, f"{said}: it was {last['change']}, {last.get('cause')} (#{last['seq']}: {last.get('reason')})"
    asked = [call for call in story.calls if call.api == "LeaveGroup" and call.member_id in ids]
    if asked:
        return False, f"{said}: its LeaveGroup was not granted: {asked[-1]}"
    closed = [
        story.closed[connection]
        for connection in {call.connection for each in ids for call in story.by_member.get(each, ())}
        if connection in story.closed
    ]
    how = f"; its connection was closed (#{closed[-1]['seq']})" if closed else ""
    return False, f"{said}: it sent no LeaveGroup, and nobody has removed it{how}"


def did_not_leave(story: Story, name: str) -> tuple[bool, str]:
    """Whether a member has never sent a LeaveGroup, nor has anybody for it; and the call that did."""
    ids = named(story, name)
    for call in story.calls:
        if call.api == "LeaveGroup" and (call.member_id in ids or name in (call.instance_id, call.client_id)):
            return False, f"member {name} sent a LeaveGroup: {call}"
    for line in departures(story, ids):
        if line.get("cause") == "member_leave":
            return False, f"member {name} was made to leave: #{line['seq']} {line.get('reason')}"
    return True, ""


def fenced(story: Story, instance_id: str) -> tuple[bool, str]:
    """Whether somebody was told FENCED_INSTANCE_ID as this instance; and what happened to it if nobody was."""
    instances = sorted(set(story.instances.values()))
    checked(f"in group {story.group_id!r} the instance id", instance_id, instances)
    ids = {member_id for member_id, name in story.instances.items() if name == instance_id}
    calls = [call for call in story.calls if call.instance_id == instance_id or call.member_id in ids]
    if any(call.error == FENCED for call in calls):
        return True, ""
    said = f"no member of instance {instance_id} was told {FENCED}"
    replaced = [line for line in departures(story, ids) if line["change"] == "replaced"]
    if not replaced:
        return False, f"{said}: nobody has taken its place"
    last = replaced[-1]
    since = [call for call in calls if call.asked_as == last["member_id"] and call.seq > last["seq"]]
    if not since:
        return False, f"{said}: #{last['seq']} {last.get('reason')}, and {last['member_id']} has asked nothing since"
    return False, f"{said}: #{last['seq']} {last.get('reason')}; since then it was told: {since[-1]}"
