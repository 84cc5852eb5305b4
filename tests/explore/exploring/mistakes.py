"""What clients do wrong: each is a function of the author and the client that errs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exploring import requests
from exploring.actors import OFFERS, Actor, Phase
from exploring.requests import INSTANCE_SINCE, UNKNOWN_TOPIC, Offers, T, Who
from exploring.steps import METADATA_MAX, SESSION_MAX_MS, SESSION_MIN_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from exploring.authors import Author

GHOST = "ghost"
WRONG_INSTANCE = "zz"
WRONG_OFFERS: tuple[Offers, ...] = ((("exotic", T),), ())
WRONG_TYPES = ("other", "", "Consumer")


def wrong_generation(author: Author, actor: Actor) -> None:
    """A generation that is over, or was not yet."""
    generation = actor.generation + author.chance.choice((-1, 1, 1, 90)) if author.chance.random() < 0.8 else -1
    _member_asks(author, actor, generation, actor.id, actor.instance_id)


def wrong_id(author: Author, actor: Actor) -> None:
    """An id of somebody else, of long ago, pending or never heard of; with or without the instance id."""
    who = author.chance.choice((author.somebody(), author.somebody(), GHOST, ""))
    instance_id = actor.instance_id if author.chance.random() < 0.6 else None
    _member_asks(author, actor, actor.generation, who, instance_id)


def wrong_instance(author: Author, actor: Actor) -> None:
    """An instance id nobody has, that of somebody else, or none."""
    others = [other.instance_id for other in author.actors if other is not actor]
    _member_asks(author, actor, actor.generation, actor.id, author.chance.choice([WRONG_INSTANCE, *others]))


def _member_asks(author: Author, actor: Actor, generation: int, who: Who, instance_id: str | None) -> None:
    """One of the requests that name a member, in a version that can say all of it."""
    api = author.chance.choice(("Heartbeat", "Heartbeat", "SyncGroup", "OffsetCommit", "LeaveGroup", "JoinGroup"))
    version = author.version(api, INSTANCE_SINCE[api] if instance_id is not None else 1)
    match api:
        case "Heartbeat":
            request = requests.heartbeat(version, generation, who, instance_id)
        case "SyncGroup":
            plan = author.assignments() if author.chance.random() < 0.5 else {}
            request = requests.sync(version, generation, who, instance_id, assignments=plan, protocol=author.protocol)
        case "OffsetCommit":
            request = requests.commit(version, generation, who, instance_id, author.offsets("t"))
        case "LeaveGroup":
            request = requests.leave(version, [(who, instance_id)])
        case _:
            request = requests.join(
                version,
                who,
                instance_id,
                protocols=actor.protocols,
                session_ms=actor.session_ms,
                rebalance_ms=actor.rebalance_ms,
                protocol_type=actor.protocol_type,
            )
    author.ask(actor, request, version, heard=False)


def join_wrongly(author: Author, actor: Actor) -> None:
    """Protocols nobody else has, no protocols, another type, a session that is too short or too long."""
    version = author.version("JoinGroup", INSTANCE_SINCE["JoinGroup"] if actor.instance_id else 0)
    what = author.chance.randint(0, 2)
    request = requests.join(
        version,
        actor.id,
        actor.instance_id,
        protocols=author.chance.choice(WRONG_OFFERS) if what == 0 else actor.protocols,
        protocol_type=author.chance.choice(WRONG_TYPES) if what == 1 else actor.protocol_type,
        session_ms=author.chance.choice((0, SESSION_MIN_MS - 1, SESSION_MAX_MS + 1)) if what == 2 else actor.session_ms,
        rebalance_ms=actor.rebalance_ms,
    )
    author.ask(actor, request, version, heard=False)


def join_twice(author: Author, actor: Actor) -> None:
    """Again while the first is under way, perhaps with other protocols or timeouts."""
    if actor.phase is not Phase.JOINING:
        return author.rejoin(actor)
    if author.chance.random() < 0.4:
        actor.protocols = author.chance.choice(OFFERS)
        actor.session_ms += 400
    return author.join(actor)


def pending_id_of_an_instance(author: Author, actor: Actor) -> None:
    """An id that was handed out to a dynamic member comes back with an instance id."""
    version = author.version("JoinGroup", INSTANCE_SINCE["JoinGroup"])
    request = requests.join(
        version,
        actor.id,
        WRONG_INSTANCE,
        protocols=actor.protocols,
        session_ms=actor.session_ms,
        rebalance_ms=actor.rebalance_ms,
        protocol_type=actor.protocol_type,
    )
    author.ask(actor, request, version, heard=False)


def sync_wrongly(author: Author, actor: Actor) -> None:
    """Another protocol than was chosen, another type, or none where there has to be one (KIP-559)."""
    version = author.version("SyncGroup", 5)
    protocol = author.chance.choice(
        (("consumer", "other"), ("connect", "range"), (None, "range"), ("consumer", None), (None, None))
    )
    plan = author.assignments() if actor.leads else {}
    request = requests.sync(version, actor.generation, actor.id, actor.instance_id, assignments=plan, protocol=protocol)
    author.ask(actor, request, version, heard=False)


def sync_again(author: Author, actor: Actor) -> None:
    """Once more, with another assignment, while the first is under way or long after."""
    if actor.generation < 0:
        return author.go_on()
    version = author.version("SyncGroup", INSTANCE_SINCE["SyncGroup"] if actor.instance_id else 0)
    if actor.phase in (Phase.JOINED, Phase.SYNCING):
        actor.current = len(author.steps)
    return author.ask(actor, author.syncing(actor, version, author.assignments()), version)


def batch_leave(author: Author, actor: Actor) -> None:
    """Several at once, known and unknown, by id, by instance or by both; or nobody."""
    version = author.version("LeaveGroup", 3)
    rows: list[tuple[Who, str | None]] = []
    for _ in range(author.chance.choice((0, 1, 2, 2, 3))):
        other = author.chance.choice(author.actors)
        rows.append(
            author.chance.choice(
                (
                    (other.id, None),
                    (other.id, other.instance_id),
                    (author.somebody(), other.instance_id),
                    ("", other.instance_id),
                    (GHOST, None),
                    (other.id, WRONG_INSTANCE),
                )
            )
        )
    author.ask(actor, requests.leave(version, rows, author.chance.choice((None, "all of us"))), version, heard=False)


def commit_from_outside(author: Author, actor: Actor) -> None:
    """As an admin client or a consumer without a group does: no generation, and mostly no member."""
    version = author.version("OffsetCommit", 1)
    who = author.chance.choice(("", "", author.somebody(), GHOST))
    author.ask(actor, requests.commit(version, -1, who, None, author.offsets("t")), version, heard=False)


def commit_wrongly(author: Author, actor: Actor) -> None:
    """A topic or partition that is not there, metadata that is too long, or nothing at all."""
    version = author.version("OffsetCommit", INSTANCE_SINCE["OffsetCommit"] if actor.instance_id else 1)
    long = "m" * (METADATA_MAX + 1)
    offsets = author.chance.choice(
        (
            {},
            {(UNKNOWN_TOPIC, 0): (1, "")},
            {(UNKNOWN_TOPIC, 0): (1, ""), ("t", 3): (3, "")},
            {("t", 9): (9, ""), ("u", 1): (1, "")},
            {("t", 2): (2, long), ("t", 3): (3, "")},
            {("t", 2): (-7, long)},
        )
    )
    author.ask(actor, requests.commit(version, actor.generation, actor.id, actor.instance_id, offsets), version)


def delete_group(author: Author, actor: Actor) -> None:
    """Whoever is in it."""
    author.ask(actor, requests.delete(), author.version("DeleteGroups"), heard=False)


def delete_offsets(author: Author, actor: Actor) -> None:
    """Of topics somebody reads, or nobody, or that are not there."""
    partitions = author.chance.choice(
        ((("t", 0),), (("u", 0), ("u", 1)), (("t", 0), (UNKNOWN_TOPIC, 0)), ((UNKNOWN_TOPIC, 0),), (("t", 9),), ())
    )
    author.ask(actor, requests.forget(partitions), author.version("OffsetDelete"), heard=False)


def no_group(author: Author, actor: Actor) -> None:
    """The group id is empty."""
    version = author.version("Heartbeat")
    match author.chance.randint(0, 3):
        case 0:
            return author.ask(actor, requests.heartbeat(version, 1, actor.id, group=""), version, heard=False)
        case 1:
            version = author.version("LeaveGroup")
            return author.ask(actor, requests.leave(version, [(actor.id, None)], group=""), version, heard=False)
        case 2:
            version = author.version("SyncGroup")
            request = requests.sync(version, 1, actor.id, assignments={}, protocol=("consumer", "range"), group="")
            return author.ask(actor, request, version, heard=False)
        case _:
            version = author.version("JoinGroup")
            request = requests.join(
                version, actor.id, protocols=actor.protocols, session_ms=actor.session_ms, rebalance_ms=500, group=""
            )
            return author.ask(actor, request, version, heard=False)


MISTAKES: tuple[Callable[[Author, Actor], None], ...] = (
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
