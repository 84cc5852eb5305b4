"""C03 and C10: commits that come from the past, and commits that do not come."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from .findings import Findings
from .story import OK

if TYPE_CHECKING:
    from .story import Exchange, Line, Story


def no_old_generation(story: Story) -> Findings:
    """C03. A commit in generation n of a member that has been told of a newer one by the answer to its JoinGroup."""
    found = Findings()
    newest: dict[str, list[Exchange]] = defaultdict(list)
    for call in story.calls:
        if call.formed is not None:
            newest[call.member_id].append(call)
        if call.api != "OffsetCommit" or call.generation is None or call.generation < 0:
            continue
        newer = [
            join
            for join in newest[call.member_id]
            if (join.formed or 0) > call.generation and (join.answered_seq or call.seq) < call.seq
        ]
        if newer:
            found.wrong(f"{call}{story.software(call.member_id)}, after {newer[-1]}", newer[-1], call)
        else:
            found.right(call)
    return found


def committed_before_revoke(story: Story, *, auto_commit: bool | None) -> Findings:
    """C10. A member that was given records commits before it gives its partitions up: it joins anew, or leaves.

    Only the eager protocol gives everything up to join. Whether the member commits automatically, and whether the
    application was given what the client fetched, cannot be seen: so what is missing is unclear, unless `auto_commit`
    is True. Records fetched after the member was told of the rebalance do not count.
    """
    found = Findings()
    if auto_commit is False:
        return found
    for member_id, calls in story.by_member.items():
        client_id = story.clients.get(member_id, "")
        shared = [
            each for each, name in story.clients.items() if name == client_id and _overlap(story, each, member_id)
        ]
        fetches = [] if len(shared) > 1 else _fetches(story, client_id)
        commits = [call for call in calls if call.api == "OffsetCommit" and call.error == OK]
        if not commits and auto_commit is None:
            continue
        for revoke, told in _revokes(calls):
            last = [call for call in commits if call.seq < revoke.seq]
            since = last[-1].seq if last else calls[0].seq
            unread = [line for line in fetches if since < line["seq"] < (told or revoke).seq]
            if not unread:
                # without fetches that are surely its own only a commit says something
                found.right(last[-1], revoke) if last else None
                continue
            said = (
                f"{story.label(member_id)}{story.software(member_id)} gave up its partitions with {revoke}, and has "
                f"committed nothing since it fetched at #{unread[0]['seq']}"
            )
            (found.wrong if auto_commit else found.unclear)(said, revoke)
    return found


def _revokes(calls: list[Exchange]) -> list[tuple[Exchange, Exchange | None]]:
    """Where a member gives up all it has: what it asked, and the call that told it of the rebalance, if one did."""
    found: list[tuple[Exchange, Exchange | None]] = []
    told: Exchange | None = None
    owns = eager = False
    for call in calls:
        if call.error == "REBALANCE_IN_PROGRESS" and call.api == "Heartbeat":
            told = told or call
        elif call.api == "LeaveGroup" or (call.api == "JoinGroup" and eager):
            if owns:
                found.append((call, told))
            owns = False
            told = None
        if call.api == "SyncGroup" and call.error == OK:
            owns = any((call.told.get("assignment") or {}).values())
        if call.formed is not None:
            eager = "cooperative" not in str(call.told.get("protocol"))
    return found


def _fetches(story: Story, client_id: str) -> list[Line]:
    """The answers that brought the client records: those that bring none are not in the trace."""
    return [
        line
        for line in story.lines
        if line["kind"] == "response"
        and line.get("api") == "Fetch"
        and line.get("client_id") == client_id
        and not line.get("error")
    ]


def _overlap(story: Story, one: str, other: str) -> bool:
    """Whether two members were there at the same time; a client that comes back has a new member id."""
    first, second = story.by_member[one], story.by_member[other]
    return one == other or (first[0].seq <= second[-1].seq and second[0].seq <= first[-1].seq)
