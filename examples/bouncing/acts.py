"""The acts: actions on the cluster and observations of it. `bouncing.verdicts` judges the claims."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Self

from bouncing import story
from bouncing.clients import Membership
from bouncing.processes import PATIENCE_S, LateError, wait_for
from bouncing.story import Bounce, Described, Fencing, GroupStory, Process, Refusal, Step, Upgrade
from bouncing.verdicts import CLIENTS, EACH, RECORDS
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from bouncing.processes import Company, Member
    from bouncing.story import Event

    from koordinator import Cluster

PARTITIONS = 12
SESSION_TIMEOUT_MS = 10_000
HEARTBEAT_INTERVAL_MS = 500

BEFORE = 4_000
"""Records before the first bounce; the others arrive while one member after the other is away."""

QUIET_S = 1.2
"""A group counts as settled, or as undisturbed, after two heartbeats of every member without an event."""

CLASSIC, CONSUMER = "range", "consumer"
"""The protocols of the rolling upgrade."""

KEYS, PAUSE_S = 60, 0.15
"""While the upgrade lasts, a record of each key is produced after each pause."""

NAMES = {f"{client}-{number}": client for client in CLIENTS for number in range(1, EACH + 1)}
"""The six members."""


class Scene:
    """A cluster with its members, and two observers: an admin client and the trace."""

    def __init__(self, cluster: Cluster, company: Company, tell: Callable[[str], None]) -> None:
        self.cluster = cluster
        self.company = company
        self.tell = tell
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        self.producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
        self._events: list[Event] = []
        self._produced = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # librdkafka closes its handles with their last reference, which has to happen before the cluster stops
        del self.admin, self.producer

    def events(self, group_id: str, after: float = 0.0) -> list[Event]:
        """Return the trace of a group since a moment (seconds since the epoch)."""
        last = self._events[-1]["seq"] if self._events else 0
        self._events += self.cluster.events(since=last)
        return [event for event in self._events if event.get("group_id") == group_id and event["wall_ts"] > after * 1e6]

    def start(self, group_id: str, name: str, client: str, instance_id: str | None, protocol: str = "range") -> Member:
        """Start a member process; `protocol` as in `Membership`."""
        membership = Membership(
            bootstrap_servers=self.cluster.bootstrap_servers,
            topic=group_id,
            group_id=group_id,
            client_id=name,
            instance_id=instance_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            protocol=protocol,
        )
        return self.company.start(name, client, membership)

    def produce(self, topic: str, count: int) -> None:
        """Produce records and wait until all are acknowledged."""
        failures: list[str] = []
        for number in range(count):
            key = str(self._produced + number)
            self.producer.produce(
                topic,
                key=key,
                value=f"record {key}",
                on_delivery=lambda error, _: failures.append(str(error)) if error else None,
            )
        self._produced += count
        left = self.producer.flush(20)
        if left or failures:
            raise LateError(f"{left} records were not acknowledged within 20 s; {len(failures)} failed {failures[:1]}")

    def describe(self, group_id: str) -> Described:
        """Return the group as an admin client sees it (DescribeGroups, which has no generation)."""
        group = self.admin.describe_consumer_groups([group_id], request_timeout=10)[group_id].result()
        members = {member.group_instance_id or member.client_id: member for member in group.members}
        return Described(
            state=group.state.name,
            partitions={
                name: tuple(sorted(place.partition for place in member.assignment.topic_partitions))
                for name, member in sorted(members.items())
            },
            member_ids={name: member.member_id for name, member in members.items()},
        )

    def ends(self, topic: str) -> dict[int, int]:
        """Return the end offset of each partition (ListOffsets)."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, partition): latest for partition in range(PARTITIONS)}
        return {each.partition: future.result().offset for each, future in self.admin.list_offsets(wanted).items()}

    def committed(self, group_id: str) -> dict[int, int]:
        """Return the committed offset of each partition (OffsetFetch)."""
        wanted = ConsumerGroupTopicPartitions(group_id)
        answer = self.admin.list_consumer_group_offsets([wanted])[group_id].result()
        return {row.partition: row.offset for row in answer.topic_partitions}

    def wait_settled(self, what: str, group_id: str, members: Iterable[Member], quiet_s: float = 0.0) -> None:
        """Wait until the group is Stable with these members, every partition has an owner, and the trace is quiet.

        Raises LateError, also if a member ends by itself.
        """
        expected = list(members)
        try:
            wait_for(what, lambda: self._settled(group_id, expected, quiet_s))
        except LateError as error:
            raise LateError(f"{error}\ngroup {group_id!r} now: {self.cluster.group(group_id).describe()}") from error

    def _settled(self, group_id: str, members: list[Member], quiet_s: float) -> bool:
        for member in members:
            if not member.is_running:
                raise LateError(f"{member.name} (process {member.pid}) ended by itself: {member.gave_up}")
        if sorted(held for member in members for held in member.partitions) != list(range(PARTITIONS)):
            return False
        now = self.cluster.group(group_id).describe()
        if now.state != "Stable" or now.waiting_for or len(now.members) != len(members):
            return False
        changed_at: float = story.state_changes(self.events(group_id))[-1]["wall_ts"] / 1e6
        return time.time() - changed_at > quiet_s


def bounces(scene: Scene, group_id: str, *, static: bool, ways: tuple[str, str]) -> GroupStory:
    """Bounce the six members of a group one after the other, while records keep arriving.

    `ways`: how the first and the second member of each client end, "closed" (SIGTERM, the consumer is closed) or
    "killed" (SIGKILL).
    """
    began_at = time.time()
    scene.cluster.create_topic(group_id, PARTITIONS)
    scene.produce(group_id, BEFORE)
    scene.tell(f"{BEFORE:,} records produced to {PARTITIONS} partitions")
    present = {name: scene.start(group_id, name, client, name if static else None) for name, client in NAMES.items()}
    everyone = list(present.values())
    scene.wait_settled("six members", group_id, present.values(), QUIET_S)
    before = scene.describe(group_id)
    group = scene.cluster.group(group_id).describe()
    scene.tell(f"six members, {group.state}, generation {group.generation}")
    labels = {member.member_id: member.instance_id or member.client_id for member in group.members}
    bounced_from = time.time()
    made: list[tuple[Bounce, list[Member]]] = []
    for name in list(present):
        bounce, survivors = _bounce(scene, group_id, present, name, ways[int(name[-1]) - 1])
        everyone.append(present[name])
        made.append((bounce, survivors))
        scene.tell(f"{name} {bounce.how} and back after {bounce.away_s:.1f} s")
    ends = scene.ends(group_id)
    wait_for(f"{RECORDS:,} records to be consumed", lambda: _consumed(everyone).keys() >= story.all_records(ends))
    wait_for("the last commits", lambda: scene.committed(group_id) == ends)
    scene.wait_settled("a quiet group", group_id, present.values(), QUIET_S)
    wait_for("two heartbeats after the last bounce", lambda: time.time() > made[-1][0].back_at + QUIET_S)
    ended_at = time.time()
    after, now = scene.describe(group_id), scene.cluster.group(group_id).describe()
    events = scene.events(group_id, bounced_from)
    committed = scene.committed(group_id)
    limits = [bounce.stopped_at for bounce, _ in made[1:]] + [ended_at]
    _end("closed", *present.values())
    return GroupStory(
        group_id=group_id,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        began_at=began_at,
        bounced_from=bounced_from,
        ended_at=ended_at,
        processes=tuple(_process(member) for member in everyone),
        leader=labels[group.leader or ""],
        before=before,
        after=after,
        generation_before=group.generation,
        generation_after=now.generation,
        bounces=tuple(
            _with_disturbed(bounce, survivors, until) for (bounce, survivors), until in zip(made, limits, strict=True)
        ),
        events=tuple(events),
        ends=ends,
        committed=committed,
        consumed=_consumed(everyone),
    )


def _bounce(
    scene: Scene, group_id: str, present: dict[str, Member], name: str, how: str
) -> tuple[Bounce, list[Member]]:
    """End one member's process, keep producing, and start its replacement; also return the surviving members."""
    old = present[name]
    stopped_at = time.time()
    partitions_before = old.partitions
    _end(how, old)
    survivors = [member for member in present.values() if member is not old]
    if old.membership.instance_id is None:
        scene.wait_settled(f"a rebalance after {name} left", group_id, survivors)
    away = scene.describe(group_id)
    scene.produce(group_id, (RECORDS - BEFORE) // len(NAMES))
    new = present[name] = scene.start(group_id, name, old.client, old.membership.instance_id)
    scene.wait_settled(f"the return of {name}", group_id, present.values())
    bounce = Bounce(
        name=name,
        client=old.client,
        how=how,
        pid_before=old.pid,
        pid_after=new.pid,
        stopped_at=stopped_at,
        back_at=time.time(),
        partitions_before=partitions_before,
        partitions_after=new.partitions,
        away=away,
        disturbed=(),
    )
    return bounce, survivors


class Stream:
    """Produces records with keys from `with` to its end, at which all are acknowledged; `produced` counts them."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.produced = 0
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._produce)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()
        left = self._producer.flush(PATIENCE_S)
        del self._producer
        if left:
            raise LateError(f"{left} records were not acknowledged within {PATIENCE_S:g} s")

    def _produce(self) -> None:
        while not self._stopped.wait(PAUSE_S):
            for key in range(KEYS):
                self._producer.produce(self._topic, key=str(key), value=f"record {self.produced}")
                self.produced += 1
            self._producer.poll(0)


def upgrade(scene: Scene, clients: Sequence[str]) -> Upgrade:
    """Replace six classic members one by one with members of `group.protocol=consumer`, and then back (KIP-848).

    Records keep arriving. `clients` have equal numbers of members.
    """
    group_id = "upgrade"
    scene.cluster.create_topic(group_id, PARTITIONS)
    names = {f"{client}-{number}": client for client in clients for number in range(1, len(NAMES) // len(clients) + 1)}
    with Stream(scene.cluster.bootstrap_servers, group_id) as stream:
        present = {name: scene.start(group_id, name, client, None, CLASSIC) for name, client in names.items()}
        everyone = list(present.values())
        scene.wait_settled("six classic members", group_id, everyone, QUIET_S)
        scene.tell(f"six classic members, {len(clients)} clients; records keep arriving")
        rolled_from = time.time()
        steps = []
        for protocol in (CONSUMER, CLASSIC):
            for name, client in names.items():
                _end("closed", present[name])
                present[name] = scene.start(group_id, name, client, None, protocol)
                everyone.append(present[name])
                scene.wait_settled(f"{name} with {protocol}", group_id, present.values())
                group = scene.cluster.group(group_id).describe()
                steps.append(Step(name, protocol, group.type, group.generation))
            scene.tell(f"all six are back with {protocol}; the group is of type {group.type}, epoch {group.generation}")
    ends = scene.ends(group_id)
    wait_for(f"{stream.produced:,} records", lambda: _consumed(everyone).keys() >= story.all_records(ends))
    wait_for("the last commits", lambda: scene.committed(group_id) == ends)
    ended_at = time.time()
    _end("closed", *present.values())
    return Upgrade(
        group_id=group_id,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        rolled_from=rolled_from,
        ended_at=ended_at,
        processes=tuple(_process(member) for member in everyone),
        steps=tuple(steps),
        produced=stream.produced,
        ends=ends,
        committed=scene.committed(group_id),
        consumed=_consumed(everyone),
    )


def fencing(scene: Scene) -> list[Fencing]:
    """Start a second process with the same group.instance.id, for kafka-python and for confluent-kafka.

    aiokafka cannot take part: see `bouncing.clients.aiokafka`.
    """
    pairs = [("kafka-python", "confluent-kafka"), ("confluent-kafka", "kafka-python")]
    seen = []
    for client, by_client in pairs:
        group_id = f"fenced-{client}"
        scene.cluster.create_topic(group_id, PARTITIONS, records=PARTITIONS)
        older = scene.start(group_id, "older", client, "the-one")
        scene.wait_settled(f"the older {client} to join", group_id, [older], QUIET_S)
        newer = scene.start(group_id, "newer", by_client, "the-one")
        status = older.wait()
        scene.wait_settled(f"the newer {by_client} to join", group_id, [newer])
        error = older.gave_up or {"name": "", "text": ""}
        scene.tell(f"{client} has ended, {by_client} has its place")
        seen.append(
            Fencing(
                instance_id="the-one",
                client=client,
                pid=older.pid,
                by_client=by_client,
                by_pid=newer.pid,
                error=error["name"],
                text=error["text"],
                status=status,
                on_the_wire=_answers(scene, group_id, "FENCED_INSTANCE_ID", "older"),
                taken_over=newer.partitions,
            )
        )
        _end("closed", newer)
    return seen


def full(scene: Scene, group_max_size: int) -> list[Refusal]:
    """Fill a group to its maximum size, and add one more member of each client."""
    group_id = "full"
    scene.cluster.create_topic(group_id, PARTITIONS)
    inside = [
        scene.start(group_id, f"inside-{number}", client, None)
        for number, client in zip(range(group_max_size), CLIENTS, strict=False)
    ]
    scene.wait_settled(f"{group_max_size} members", group_id, inside, QUIET_S)
    outside = [scene.start(group_id, f"one-more-{client}", client, None) for client in CLIENTS]
    seen = []
    for member in outside:
        status = member.wait()
        error = member.gave_up or {"name": "", "text": ""}
        scene.tell(f"{member.client} has ended")
        seen.append(
            Refusal(
                client=member.client,
                pid=member.pid,
                group_max_size=group_max_size,
                error=error["name"],
                text=error["text"],
                status=status,
                on_the_wire=_answers(scene, group_id, "GROUP_MAX_SIZE_REACHED", member.name),
                members_after=len(scene.cluster.group(group_id).members),
            )
        )
    return seen


def _end(how: str, *members: Member) -> None:
    for member in members:
        if how == "killed":
            member.kill()
        else:
            member.stop()
    for member in members:
        member.wait()


def _answers(scene: Scene, group_id: str, error: str, client_id: str) -> int:
    return sum(
        event["kind"] == "response" and event.get("error") == error and event["client_id"] == client_id
        for event in scene.events(group_id)
    )


def _consumed(members: Iterable[Member]) -> Counter[story.Record]:
    return Counter(record for member in members for record in member.consumed)


def _process(member: Member) -> Process:
    return Process(
        name=member.name,
        client=member.client,
        instance_id=member.membership.instance_id,
        pid=member.pid,
        started_at=member.started_at,
        ended_at=member.ended_at or time.time(),
        callbacks=tuple(member.callbacks),
    )


def _with_disturbed(bounce: Bounce, survivors: Iterable[Member], until: float) -> Bounce:
    """Return the bounce with the callbacks of the surviving members until the next one."""
    disturbed = [
        (survivor.name, callback.kind)
        for survivor in survivors
        for callback in survivor.callbacks
        if bounce.stopped_at <= callback.at < until
    ]
    return Bounce(**{**bounce.__dict__, "disturbed": tuple(disturbed)})
