"""Comparisons of a group's state with an expectation, shared by the emulator and the port to a running Kafka."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...core.groups.classic.group import ClassicGroupState
from ...verify.ownership import assignment_differences, ownership_errors
from ..results import GroupCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ...verify.ownership import Assignment, MemberAssignment


def member_labels(members: Collection[tuple[str | None, str, str]], names: Collection[str]) -> list[str]:
    """Return the label of each member, given by instance id, member id and client id.

    It is the one that `names` has, if it is unambiguous, else the instance id or the member id.
    """
    clients = Counter(client_id for _, _, client_id in members)
    labels = []
    for instance_id, member_id, client_id in members:
        choices = (instance_id, member_id, client_id if clients[client_id] == 1 else None)
        labels.append(next((name for name in choices if name in names), None) or instance_id or member_id)
    return labels


def assignment_check(expected: Mapping[str, Assignment], actual: Mapping[str, Assignment]) -> GroupCheck:
    """Compare the partitions of each member, by label."""
    wrong = assignment_differences(expected, actual)
    return GroupCheck(not wrong, "\n  ".join(["the assignment differs:", *wrong]))


def ownership_check(
    state: str, members: Collection[MemberAssignment], partitions: Mapping[str, int], topics: Collection[str] | None
) -> GroupCheck:
    """Check that a group is Stable and exactly one member owns each partition of `topics`.

    `partitions` has the number of partitions of each topic. Without `topics`: of the subscribed topics.
    """
    if state != ClassicGroupState.STABLE.value:
        return GroupCheck(ok=False, message=f"expected a Stable group, but it is {state}")
    wrong = ownership_errors(members, partitions, topics)
    is_early = any(each.endswith("has no owner") for each in wrong)
    remedy = "\n  wait_stable(all_owned=True) waits for it, and so does timeout=" if is_early else ""
    return GroupCheck(not wrong, f"expected every partition to be owned exactly once, but {'; '.join(wrong)}{remedy}")


def offsets_check(
    expected: Iterable[tuple[str, int, int]],
    committed: Mapping[tuple[str, int], int],
    history: Callable[[str, int], str] = lambda _topic, _partition: "",
) -> GroupCheck:
    """Compare committed offsets; `history` returns a text on the last commit of a partition."""
    wrong = [
        f"{topic} {partition}: expected {offset}, "
        f"{f'committed is {committed[at]}' if at in committed else 'nothing is committed'}{history(topic, partition)}"
        for topic, partition, offset in expected
        if committed.get(at := (topic, partition)) != offset
    ]
    return GroupCheck(not wrong, "\n  ".join(["the committed offsets differ:", *wrong]))
