"""The claims of KIP-1071, streams groups: the coordinator assigns the tasks of an application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.trace.events import ResponseSent
from koordinator.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)

from ..cells import AFTER_S
from ..figures import figures_of
from ..load import GROUP, TOPIC, Load
from ..record import FactKind
from ..schemes.on_core import CoreScheme, Members
from ..situations import BEYOND_S, name_of, newcomer, victim
from .claim import CONDITIONS, KIP_1071, Finding, begin, claim, measure

if TYPE_CHECKING:
    from koordinator.emulator.trace.events import TraceEvent

    from ..record import Fact

HEARTBEAT_VERSION = 0
CHANGELOG = "lab-store-changelog"


class Application(CoreScheme):
    """A streams application with a task and a store for each partition of its topic.

    `standbys` has the standby tasks of each member, as its latest response with tasks assigns them.
    """

    def __init__(self, replicas: int = 0, members: int = 3) -> None:
        config = (("group.streams.num.standby.replicas", replicas), ("group.streams.initial.rebalance.delay.ms", 3000))
        super().__init__(Load(members=members, config=config), Members(group_protocol="streams"))
        self.standbys: dict[str, frozenset[int]] = {}
        self.observe(self._note_standbys)
        # the first member brings the topology, and leaves: the puppets' own has no store
        self._found(0)
        self.pass_time(1)
        self._found(-1)
        begin(self)

    def _found(self, epoch: int) -> None:
        changelog = TopicInfo(name=CHANGELOG, partitions=0, replication_factor=-1, topic_configs=())
        subtopology = Subtopology(subtopology_id="0", source_topics=(TOPIC,), state_changelog_topics=(changelog,))
        request = StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="founder",
            member_epoch=epoch,
            rebalance_timeout_ms=round(1000 * self.load.rebalance_timeout_s),
            topology=None if epoch else Topology(epoch=0, subtopologies=(subtopology,)),
            active_tasks=None if epoch else (),
            standby_tasks=None if epoch else (),
            warmup_tasks=None if epoch else (),
            process_id=None if epoch else "founder",
            client_tags=None if epoch else (),
        )
        self.send(request, HEARTBEAT_VERSION)

    def _note_standbys(self, event: TraceEvent) -> None:
        if isinstance(event, ResponseSent) and isinstance(event.response, StreamsGroupHeartbeatResponse):
            rows = event.response.standby_tasks
            if rows is not None:
                name = event.received.call.client_id
                self.standbys[name] = frozenset(number for row in rows for number in row.partitions)

    def tasks(self, name: str) -> frozenset[int]:
        """Return the active tasks of a member."""
        return frozenset(self.group.puppets[name].assignment.get("0", ()))


@claim(f"{KIP_1071}, internal topics", "Members create no internal topics: the coordinator does.")
def the_coordinator_creates_internal_topics() -> Finding:
    """Count the partitions of the changelog and the tasks of an application whose members create no topic."""
    with Application() as scheme:
        partitions = len(scheme.cluster.topic(CHANGELOG).partitions)
        tasks = sum(len(scheme.tasks(name_of(number))) for number in range(scheme.load.members))
    return Finding(f"a changelog of {partitions} partitions, {tasks} tasks", partitions == tasks == Load().partitions)


@claim(f"{KIP_1071}, task assignment", "When a member joins, only the tasks that it gets move.")
def only_the_tasks_of_a_newcomer_move() -> Finding:
    """Let a member join; compare the moves with the newcomer's tasks and the fewest moves."""
    with Application() as scheme:
        newcomer(scheme)
        scheme.pass_time(AFTER_S)
        figures = figures_of(scheme.record, scheme.load, scheme.now_ms)
        tasks = len(scheme.tasks(name_of(scheme.load.members)))
    text = f"{figures.moved} moves of at least {figures.moved_least}, {tasks} tasks of the newcomer"
    eager = measure("eager", "newcomer").moved
    return Finding(f"{text}; {eager} moves eager", figures.moved == figures.moved_least == tasks < eager)


@claim(f"{KIP_1071}, motivation", "There is no barrier: a newcomer gets tasks while another member is silent.")
def a_silent_member_holds_up_no_newcomer() -> Finding:
    """Let a member join while the heartbeats of another one are held up, beside an eager group."""
    with Application() as scheme:
        streams_s = _first_work_s(scheme)
    with CoreScheme(Load(), Members(("range",))) as scheme:
        begin(scheme)
        eager_s = _first_work_s(scheme)
    text = f"seconds until the newcomer has work: {eager_s:g} eager, {streams_s:g} streams"
    return Finding(text, streams_s < Load().session_timeout_s / 2 < eager_s)


def _first_work_s(scheme: CoreScheme) -> float:
    scheme.cut_off(victim(scheme))
    newcomer(scheme)
    scheme.pass_time(AFTER_S)
    name, facts = name_of(scheme.load.members), _changes(scheme)
    first_ms = next(fact.at_ms for fact in facts if fact.member == name and fact.partitions)
    return (first_ms - scheme.record.begin_ms) / 1000


def _changes(scheme: CoreScheme) -> list[Fact]:
    """Return the changes of the members' work since the beginning."""
    return [fact for fact in scheme.record.facts[scheme.record.first :] if fact.kind is FactKind.HOLDS]


@claim(f"{KIP_1071}, motivation", "A member whose heartbeats are missing does not stop the others.")
def missing_heartbeats_stop_nobody_else() -> Finding:
    """Cut a member off until its session has expired; count the tasks that the others give up meanwhile."""
    with Application() as scheme:
        silent = victim(scheme)
        held = {name: scheme.tasks(name) for name in scheme.group.puppets if name != silent}
        scheme.cut_off(silent)
        scheme.pass_time(scheme.load.session_timeout_s + BEYOND_S)
        lost = sum(len(held.get(fact.member, frozenset()) - fact.partitions) for fact in _changes(scheme))
        taken = sum(len(scheme.tasks(name) - tasks) for name, tasks in held.items())
    return Finding(f"the others give up {lost} tasks, and take over {taken} of the silent member", lost == 0 < taken)


@claim(
    f"{KIP_1071}, task assignment",
    "A standby takes over without restoring state.",
    CONDITIONS,
    "active tasks stay balanced: a member takes over no more than its share",
)
def a_standby_takes_over_without_restoring() -> Finding:
    """Kill one of 3 members, and one of 2; count its tasks whose new owners have to restore them."""
    without, spread, paired = _restored(3, replicas=0), _restored(3, replicas=1), _restored(2, replicas=1)
    text = f"restored: {without} of 4 tasks without standbys; with one {spread} of 4 to two members"
    return Finding(f"{text}, {paired} of 6 to one", spread == 0, paired == 0 < spread < without)


def _restored(members: int, *, replicas: int) -> int:
    """Return the number of tasks of a killed member that go to members without a standby of them."""
    with Application(replicas, members) as scheme:
        dead = victim(scheme)
        orphans, standbys = scheme.tasks(dead), dict(scheme.standbys)
        scheme.kill(dead)
        scheme.pass_time(AFTER_S)
        owners = {task: name for name in scheme.group.puppets if name != dead for task in scheme.tasks(name)}
        return sum(task not in standbys.get(owners[task], ()) for task in orphans)
