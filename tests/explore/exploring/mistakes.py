"""Mistakes of clients: each is a function of the author and the erring client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import requests

from exploring.actors import OFFERS, Actor, Phase, T
from exploring.steps import GROUP, INSTANCE_SINCE, METADATA_MAX, SESSION_MAX_MS, SESSION_MIN_MS, UNKNOWN_TOPIC
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from builders.requests import Protocols

    from exploring.generator import SequenceGenerator
    from exploring.steps import MemberRef

GHOST = "ghost"
WRONG_INSTANCE = "zz"
WRONG_OFFERS: tuple[Protocols, ...] = ((("exotic", T),), ())
WRONG_TYPES = ("other", "", "Consumer")


def wrong_generation(generator: SequenceGenerator, actor: Actor) -> None:
    """Use a past or future generation."""
    generation = actor.generation + generator.chance.choice((-1, 1, 1, 90)) if generator.chance.random() < 0.8 else -1
    _member_exchanges(generator, actor, generation, actor.id, actor.instance_id)


def wrong_id(generator: SequenceGenerator, actor: Actor) -> None:
    """Use an id of another member, a former, pending or unknown one; with or without the instance id."""
    who = generator.chance.choice((generator.any_member_id(), generator.any_member_id(), GHOST, ""))
    instance_id = actor.instance_id if generator.chance.random() < 0.6 else None
    _member_exchanges(generator, actor, actor.generation, who, instance_id)


def wrong_instance(generator: SequenceGenerator, actor: Actor) -> None:
    """Use an unknown instance id, another member's, or none."""
    others = [other.instance_id for other in generator.actors if other is not actor]
    _member_exchanges(generator, actor, actor.generation, actor.id, generator.chance.choice([WRONG_INSTANCE, *others]))


def _member_exchanges(
    generator: SequenceGenerator, actor: Actor, generation: int, who: MemberRef, instance_id: str | None
) -> None:
    """Send a request that names a member, in a version with all its fields."""
    api = generator.chance.choice(("Heartbeat", "Heartbeat", "SyncGroup", "OffsetCommit", "LeaveGroup", "JoinGroup"))
    version = generator.version(api, INSTANCE_SINCE[api] if instance_id is not None else 1)
    match api:
        case "Heartbeat":
            request = generator.beating(generation, who, instance_id)
        case "SyncGroup":
            plan = generator.assignments() if generator.chance.random() < 0.5 else {}
            request = requests.sync_group(GROUP, generation, who, plan, instance_id, protocol=generator.protocol)
        case "OffsetCommit":
            request = generator.committing(generation, who, instance_id, generator.offsets("t"))
        case "LeaveGroup":
            request = requests.leave_group(version, GROUP, (who, instance_id))
        case _:
            request = actor.joining(who, instance_id)
    generator.ask(actor, request, version, heard=False)


def join_wrongly(generator: SequenceGenerator, actor: Actor) -> None:
    """Join with unusual protocols, no protocols, another type, or a session timeout out of bounds."""
    version = generator.version("JoinGroup", INSTANCE_SINCE["JoinGroup"] if actor.instance_id else 0)
    what = generator.chance.randint(0, 2)
    if what == 0:
        changed = {"protocols": generator.chance.choice(WRONG_OFFERS)}
    elif what == 1:
        changed = {"protocol_type": generator.chance.choice(WRONG_TYPES)}
    else:
        changed = {"session_ms": generator.chance.choice((0, SESSION_MIN_MS - 1, SESSION_MAX_MS + 1))}
    request = actor.joining(actor.id, actor.instance_id, **changed)
    generator.ask(actor, request, version, heard=False)


def join_twice(generator: SequenceGenerator, actor: Actor) -> None:
    """Join again while the first join is parked, perhaps with other protocols or timeouts."""
    if actor.phase is not Phase.JOINING:
        return generator.rejoin(actor)
    if generator.chance.random() < 0.4:
        actor.protocols = generator.chance.choice(OFFERS)
        actor.session_ms += 400
    return generator.join(actor)


def pending_id_of_an_instance(generator: SequenceGenerator, actor: Actor) -> None:
    """Use the id issued to a dynamic member together with an instance id."""
    version = generator.version("JoinGroup", INSTANCE_SINCE["JoinGroup"])
    request = actor.joining(actor.id, WRONG_INSTANCE)
    generator.ask(actor, request, version, heard=False)


def sync_wrongly(generator: SequenceGenerator, actor: Actor) -> None:
    """Sync with another protocol than the chosen one, another type, or none where required (KIP-559)."""
    version = generator.version("SyncGroup", 5)
    protocol = generator.chance.choice(
        (("consumer", "other"), ("connect", "range"), (None, "range"), ("consumer", None), (None, None))
    )
    plan = generator.assignments() if actor.leads else {}
    request = requests.sync_group(GROUP, actor.generation, actor.id, plan, actor.instance_id, protocol=protocol)
    generator.ask(actor, request, version, heard=False)


def sync_again(generator: SequenceGenerator, actor: Actor) -> None:
    """Sync again with another assignment, while the first is parked or long after."""
    if actor.generation < 0:
        return generator.next_step()
    version = generator.version("SyncGroup", INSTANCE_SINCE["SyncGroup"] if actor.instance_id else 0)
    if actor.phase in (Phase.JOINED, Phase.SYNCING):
        actor.current = len(generator.steps)
    return generator.ask(actor, generator.syncing(actor, generator.assignments()), version)


def batch_leave(generator: SequenceGenerator, actor: Actor) -> None:
    """Remove several members at once, known and unknown, by id, by instance or both; or none."""
    version = generator.version("LeaveGroup", 3)
    rows: list[tuple[MemberRef, str | None]] = []
    for _ in range(generator.chance.choice((0, 1, 2, 2, 3))):
        other = generator.chance.choice(generator.actors)
        rows.append(
            generator.chance.choice(
                (
                    (other.id, None),
                    (other.id, other.instance_id),
                    (generator.any_member_id(), other.instance_id),
                    ("", other.instance_id),
                    (GHOST, None),
                    (other.id, WRONG_INSTANCE),
                )
            )
        )
    reason = generator.chance.choice((None, "all of us"))
    generator.ask(actor, requests.leave_group(version, GROUP, *rows, reason=reason), version, heard=False)


def commit_from_outside(generator: SequenceGenerator, actor: Actor) -> None:
    """Commit like an admin client or a consumer without a group: no generation, and mostly no member."""
    version = generator.version("OffsetCommit", 1)
    who = generator.chance.choice(("", "", generator.any_member_id(), GHOST))
    generator.ask(actor, generator.committing(-1, who, None, generator.offsets("t")), version, heard=False)


def commit_wrongly(generator: SequenceGenerator, actor: Actor) -> None:
    """Commit an unknown topic or partition, long metadata, or nothing."""
    version = generator.version("OffsetCommit", INSTANCE_SINCE["OffsetCommit"] if actor.instance_id else 1)
    long = "m" * (METADATA_MAX + 1)
    offsets = generator.chance.choice(
        (
            {},
            {(UNKNOWN_TOPIC, 0): (1, "")},
            {(UNKNOWN_TOPIC, 0): (1, ""), ("t", 3): (3, "")},
            {("t", 9): (9, ""), ("u", 1): (1, "")},
            {("t", 2): (2, long), ("t", 3): (3, "")},
            {("t", 2): (-7, long)},
        )
    )
    generator.ask(actor, generator.committing(actor.generation, actor.id, actor.instance_id, offsets), version)


def delete_group(generator: SequenceGenerator, actor: Actor) -> None:
    """Delete the group, whether empty or not."""
    generator.ask(actor, DeleteGroupsRequest(groups_names=(GROUP,)), generator.version("DeleteGroups"), heard=False)


def delete_offsets(generator: SequenceGenerator, actor: Actor) -> None:
    """Delete offsets of topics that are subscribed, unsubscribed, or unknown."""
    partitions = generator.chance.choice(
        ((("t", 0),), (("u", 0), ("u", 1)), (("t", 0), (UNKNOWN_TOPIC, 0)), ((UNKNOWN_TOPIC, 0),), (("t", 9),), ())
    )
    generator.ask(actor, requests.offset_delete(GROUP, partitions), generator.version("OffsetDelete"), heard=False)


def no_group(generator: SequenceGenerator, actor: Actor) -> None:
    """Use an empty group id."""
    version = generator.version("Heartbeat")
    match generator.chance.randint(0, 3):
        case 0:
            return generator.ask(actor, generator.beating(1, actor.id, None, group=""), version, heard=False)
        case 1:
            version = generator.version("LeaveGroup")
            return generator.ask(actor, requests.leave_group(version, "", (actor.id, None)), version, heard=False)
        case 2:
            version = generator.version("SyncGroup")
            request = requests.sync_group("", 1, actor.id, protocol=("consumer", "range"))
            return generator.ask(actor, request, version, heard=False)
        case _:
            version = generator.version("JoinGroup")
            request = requests.join_group(
                "", actor.id, protocols=actor.protocols, session_ms=actor.session_ms, rebalance_ms=500
            )
            return generator.ask(actor, request, version, heard=False)


MISTAKES: tuple[Callable[[SequenceGenerator, Actor], None], ...] = (
    wrong_generation,
    wrong_generation,
    wrong_id,
    wrong_id,
    wrong_id,
    wrong_instance,
    join_wrongly,
    join_wrongly,
    join_twice,
    pending_id_of_an_instance,
    sync_wrongly,
    sync_again,
    sync_again,
    batch_leave,
    batch_leave,
    commit_from_outside,
    commit_wrongly,
    delete_group,
    delete_offsets,
    no_group,
)
