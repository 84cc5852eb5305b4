"""Arguments of handles: every wrong one is an error of one line, and every name of a thing names it."""

from __future__ import annotations

import asyncio
import inspect
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
import trio
from brokers.http_server import Serving

from koordinator import Cluster, Emulator, Group, Simulation, aio, faults
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.handles import faults as fault_handles
from koordinator.handles.errors import EXPECTED, ClusterStopped, InvalidArgument
from koordinator.handles.nodes import Node
from koordinator.handles.puppets import Puppet
from koordinator.handles.remote import Remote
from koordinator.handles.topics import Topic
from koordinator.handles.transactions import PuppetProducer, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    99,
    float("nan"),
    float("inf"),
    "no such name",
    "",
    b"bytes",
    [3],
    ["no such name"],
    {"no such name": 3},
    {("orders", "0"): "x"},
    (1, 2, 3),
    object(),
)

INTERNALS = re.compile(
    r"object has no attribute|not supported between|not iterable|unpack|subscriptable|argument of type|__\w+__"
    r"|\b(acls|clocks|events|groups|holds|nodes|producers|puppets|snapshots|topics|transactions|verbs|verify)\.[a-z_]+\(|Traceback|NoneType"
)

GOOD: dict[str, Any] = {
    "action": faults.drop(),
    "api": "Heartbeat",
    "as_if": "session",
    "behaviour": "healthy",
    "clients": ["a"],
    "coordinator": 1,
    "count": 1,
    "document": {},
    "duration": 1,
    "exactly": 1,
    "expected": {},
    "group": "svc",
    "group_id": "svc",
    "host": "localhost",
    "instance": "i",
    "instance_id": "i",
    "kind": "aiokafka",
    "listener": "PLAINTEXT",
    "markers": "delayed",
    "member": "a",
    "mode": "manual",
    "name": "new",
    "offsets": {("orders", 0): 1},
    "operation": "read",
    "partition": 0,
    "port": 1,
    "seed": None,
    "size": 5,
    "source": [],
    "state": "Stable",
    "timeout": 0,
    "to": 1,
    "topic": "orders",
    "transactional_id": "p",
    "user": "alice",
}

GUARDED = {"authorizer.class.name": STANDARD_AUTHORIZER}

HANDLES = (
    *(Cluster, Group, Node, Puppet, PuppetProducer, Topic, Transaction),
    *(fault_handles.Hold, fault_handles.Lockstep, fault_handles.Rule),
)

PARAMETERS = [
    pytest.param(kind, name, each.name, id=f"{kind.__name__}.{name}-{each.name}")
    for kind in HANDLES
    for name, method in inspect.getmembers(kind, inspect.isfunction)
    if not name.startswith("_") and name != "stop"
    for each in list(inspect.signature(method).parameters.values())[1:]
    if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
]


@pytest.fixture
def simulated() -> Iterator[dict[type, object]]:
    with Simulation(topics={"orders": 4}, brokers=2, config=GUARDED) as cluster:
        group = cluster.group("svc")
        puppet = group.create_puppet("a", topics=["orders"], instance_id="i").join()
        group.wait_stable(members=1)
        rule = group.add_rule("OffsetCommit", faults.drop(), optional=True)
        hold, lockstep = group.hold("OffsetDelete"), group.lockstep("OffsetDelete", ["a"])
        node, topic = cluster.nodes[2], cluster.topic("orders")
        producer, transaction = cluster.create_producer("p").init(), cluster.transaction("p")
        handles = (cluster, group, puppet, node, rule, hold, lockstep, topic, producer, transaction)
        yield {type(each): each for each in handles}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "method", "parameter"), PARAMETERS)
def test_a_wrong_argument_is_an_error_of_one_line_without_internals(
    simulated: dict[type, object], kind: type, method: str, parameter: str
) -> None:
    handle = simulated[kind]
    function = getattr(handle, method)
    for value in WRONG:
        needed = [
            each.name
            for each in inspect.signature(function).parameters.values()
            if each.default is each.empty or each.name == "timeout"
        ]
        arguments = {name: GOOD[name] for name in needed if name in GOOD}
        try:
            result = function(**{**arguments, parameter: value})
            if hasattr(result, "__enter__"):
                result.__enter__()
                result.__exit__(None, None, None)
        except AssertionError as error:
            text = str(error).partition("\n")[0]
        except (ValueError, OSError) as error:
            text = str(error)
            assert "\n" not in text
            assert len(text) < 400
        else:
            continue
        assert not INTERNALS.search(text), f"{method}({parameter}={value!r}): {text}"
    cluster = simulated[Cluster]
    assert isinstance(cluster, Cluster)
    assert len(cluster.nodes) >= 2


@pytest.fixture(scope="module")
def unchanged() -> Iterator[Cluster]:
    """A simulation that refuses all calls."""
    with Simulation(topics={"orders": 4, "bills": 1}, brokers=2) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda c: c.group("svc").expire_session(3), "Group('svc').expire_session: member=3: must be a string, Member"),
        (lambda c: c.move_coordinator("svc", to="2"), "Cluster.move_coordinator: to='2': must be an integer or Node"),
        (lambda c: c.move_coordinator("svc", to=True), "Cluster.move_coordinator: to=True: must be an integer or Node"),
        (
            lambda c: c.records("ordesr"),
            "there is no topic 'ordesr'; there are 'bills', 'orders'; did you mean 'orders'?",
        ),
        (lambda c: c.topic("ordesr").partitions, "there is no topic 'ordesr'; there are 'bills', 'orders'; did you"),
        (lambda c: c.leader("ordesr", 0), "there is no topic 'ordesr'; there are 'bills', 'orders'; did you"),
        (lambda c: c.move_leader("ordesr", 0, 1), "there is no topic 'ordesr'; there are 'bills', 'orders'; did you"),
        (lambda c: c.add_partitions("ordesr", 1), "there is no topic 'ordesr'; there are 'bills', 'orders'; did you"),
        (lambda c: c.topic(3), "Cluster.topic: name=3: must be a string or Topic"),
        (
            lambda c: c.group("svc").set_offsets({(3, 0): 1}),
            "offsets={(3, 0): 1}: must be a mapping of (string or Topic, integer) to integer",
        ),
        (lambda c: c.nodes[1].misdirect("svc", 9), "there is no node 9; there are 1, 2"),
        (lambda c: c.group("svc").wait_stable(timeout="1"), "'1' is not a duration: use seconds as a number, or text"),
        (
            lambda c: c.group("svc").create_puppet("p", protocols="range"),
            "protocols='range': must be a list of string or None",
        ),
        (lambda c: c.group("svc").add_rule("Heartbeat", "drop"), "action 'drop': must be one of koordinator.faults"),
        (lambda c: c.group("svc").assert_request("Fetsh", error="X"), "the API 'Fetsh' is not known"),
        (lambda c: c.produce("orders", 3), "record 0: must be a value, a pair of key and value, or a mapping"),
    ],
)
def test_an_error_has_the_value_the_place_and_the_remedy(
    unchanged: Cluster, call: Callable[[Cluster], object], text: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        call(unchanged)
    assert text in str(caught.value)


def test_an_expected_error_has_no_frames_of_the_emulator_and_no_chain(cluster: Cluster) -> None:
    cluster.group("svc").create_puppet("a", topics=["orders"]).join().wait_state("stable")

    def rebalance() -> None:
        with cluster.group("svc").assert_no_rebalance():
            cluster.group("svc").rebalance()

    for call in (
        rebalance,
        lambda: cluster.group("svc").evict("zz"),
        lambda: cluster.group("svc").wait_stable(members=2, timeout=0),
        lambda: cluster.group("svc").expire_session(3),  # type: ignore[arg-type]
    ):
        with pytest.raises(EXPECTED) as caught:
            call()
        error = caught.value
        files = {frame.filename.rpartition("/")[2] for frame in traceback.extract_tb(error.__traceback__)}
        assert files == {"test_handle_arguments.py", "handle.py"}
        assert "direct cause" not in "".join(traceback.format_exception(error))
        assert "During handling" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("run", [asyncio.run, lambda coroutine: trio.run(lambda: coroutine)], ids=["asyncio", "trio"])
def test_an_expected_error_in_a_loop_has_no_frames_of_threads(cluster: Cluster, run: Callable[..., object]) -> None:
    async def use() -> None:
        with pytest.raises(EXPECTED) as caught:
            await aio.Cluster(cluster).group("svc").wait_stable(members=1, timeout=0)
        files = [frame.filename.rpartition("/")[2] for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert files == ["test_handle_arguments.py", "handles.py", "waiting.py"]
        assert "During handling" not in "".join(traceback.format_exception(caught.value))

    run(use())


def test_a_failure_report_ends_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_a_typo(koordinator):
            koordinator.group("svc").create_puppet("a").join().wait_state("stable")
            koordinator.group("svc").evict("b")

        def test_a_wait(koordinator):
            koordinator.group("svc").create_puppet("a").join().wait_state("stable")
            koordinator.group("svc").wait_stable(members=2, timeout=0)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--koordinator-trace=off", timeout=170)
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert "handles/" not in text
    assert "concurrent" not in text
    # the events are in the message of the wait, and not again in a section
    failures, _, _ = text.partition("short test summary info")
    assert failures.count("Empty => PreparingRebalance") == 2


def test_a_call_of_a_stopped_cluster_is_named_as_the_test_wrote_it() -> None:
    with Simulation() as cluster:
        group = cluster.group("svc")
    with pytest.raises(ClusterStopped, match=re.escape("Group('svc').state: the simulated cluster has stopped")):
        _ = group.state
    with pytest.raises(ClusterStopped, match=re.escape("Group('svc').wait_stable(members=2): the simulated")):
        group.wait_stable(members=2)


# -- names of members, groups, topics and nodes ---


@pytest.fixture(params=["thread", "virtual", "http"])
def any_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "http":
        with Serving(topics={"orders": 4}, brokers=2) as served, Remote(served.url) as server:
            yield server.cluster()
        return
    start = Emulator if request.param == "thread" else Simulation
    with start(topics={"orders": 4}, brokers=2) as cluster:
        yield cluster


NAMES: dict[str, Callable[[Puppet, Group], Any]] = {
    "Member": lambda _puppet, group: group.members[0],
    "Puppet": lambda puppet, _group: puppet,
    "member id": lambda puppet, _group: puppet.member_id,
    "instance id": lambda _puppet, _group: "i",
    "client id": lambda _puppet, _group: "app",
}

TAKES_MEMBER: dict[str, Callable[[Group, Any], object]] = {
    "expire_session": lambda group, member: group.expire_session(member),
    "advance": lambda group, member: group.advance("1h", expire=[member]),
    "advance one": lambda group, member: group.advance("1h", expire=member),
    "evict": lambda group, member: group.evict(member, as_if="session"),
    "fence": lambda group, member: group.fence(member),
    "assert_request": lambda group, member: group.assert_request("JoinGroup", member=member),
    "assert_did_not_leave": lambda group, member: group.assert_did_not_leave(member),
    "rule": lambda group, member: group.add_rule("Heartbeat", faults.drop(), member=member),
    "hold": lambda group, member: group.hold("Heartbeat", member=member).wait_entered(),
    "lockstep": lambda group, member: group.lockstep("Heartbeat", [member]).wait_round(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", TAKES_MEMBER)
def test_a_member_is_named_in_any_way(any_cluster: Cluster, method: str, name: str) -> None:
    group = any_cluster.group("svc")
    puppet = group.create_puppet("p", instance_id="i", client_id="app", topics=["orders"]).join().wait_state("stable")
    TAKES_MEMBER[method](group, NAMES[name](puppet, group))


@pytest.mark.parametrize("name", NAMES)
def test_a_fenced_or_left_member_is_named_in_any_way(name: str) -> None:
    with Simulation(topics={"orders": 4}) as cluster:
        group = cluster.group("svc")
        puppet = (
            group.create_puppet("p", instance_id="i", client_id="app", topics=["orders"]).join().wait_state("stable")
        )
        member = NAMES[name](puppet, group)
        puppet.leave()
        group.assert_left(member)
        puppet.join().wait_state("stable")
        member = NAMES[name](puppet, group)
        group.create_puppet("q", instance_id="i", client_id="app", topics=["orders"]).join().wait_state("stable")
        group.assert_fenced(member, timeout=60)


@pytest.mark.slow
def test_a_group_and_a_node_are_named_by_handle_or_id(any_cluster: Cluster) -> None:
    group, node = any_cluster.group("svc"), any_cluster.nodes[2]
    any_cluster.move_coordinator(group, to=node)
    assert any_cluster.coordinator(group) == node
    any_cluster.move_coordinator("svc", to=1)
    assert any_cluster.coordinator("svc") == any_cluster.nodes[1] != node
    any_cluster.move_leader("orders", 0, to=node)
    assert any_cluster.leader("orders", 0) == node
    any_cluster.nodes[1].misdirect(group, coordinator=node)
    any_cluster.nodes[1].misdirect(group, None)
    group.create_puppet("a", topics=["orders"]).join().wait_state("stable")
    assert any_cluster.events(group=group) == group.events() != []
    rule = any_cluster.add_rule("Heartbeat", faults.drop(), group=group, broker=node, optional=True)
    assert "broker=2" in repr(rule)
    assert "group='svc'" in repr(rule)


@pytest.mark.slow
def test_a_topic_is_named_by_handle_or_name(any_cluster: Cluster) -> None:
    topic, group = any_cluster.topic("orders"), any_cluster.group("svc")
    assert any_cluster.create_topic(any_cluster.topic("bills")) == any_cluster.topic("bills") != topic
    assert {topic, any_cluster.topic(topic)} == set(any_cluster.topics()) - {any_cluster.topic("bills")}
    assert any_cluster.produce(topic, "a") == topic.produce("b", [("k", "c")]) - 1 == 1
    assert any_cluster.records(topic) == topic.records() == any_cluster.records("orders")
    assert any_cluster.add_partitions(topic, 1) == topic.add_partitions(1) - 1 == len(topic.partitions) - 1
    assert sum(each.end_offset for each in topic.partitions) == 3
    any_cluster.move_leader(topic, 5, to=2)
    assert any_cluster.leader(topic, 5) == topic.leader(5) == any_cluster.nodes[2]
    puppet = group.create_puppet("p", topics=[topic], owned={topic: [0]}).join().wait_state("stable")
    group.assert_assignment({"p": {topic: range(6)}}).assert_owned_exactly_once([topic])
    group.set_offsets({(topic, 0): 1})
    puppet.commit({(topic, 1): 2})
    group.assert_committed({(topic, 0): 1, (topic, 1): 2}, timeout=60)


@pytest.mark.slow
def test_a_topic_has_its_id_and_the_configs_that_were_set(any_cluster: Cluster) -> None:
    topic = any_cluster.topic("orders")
    assert UUID(topic.id).int
    assert topic.configs == {}


def test_handles_are_equal_if_they_are_of_one_thing_of_one_cluster() -> None:
    with Simulation() as one, Simulation() as two:
        assert one.group("a") == one.group("a") != one.group("b")
        assert one.topic("a") == one.topic("a") != one.topic("b")
        assert len({one.group("a"), one.group("a"), one.topic("a"), two.group("a"), two.topic("a")}) == 4
        assert one.nodes == one.nodes
        assert one.nodes != two.nodes


def test_the_handles_of_aio_are_arguments_as_the_blocking_ones() -> None:
    async def use() -> None:
        async with aio.Emulator(topics={"orders": 4}, brokers=2) as cluster:
            group, node = cluster.group("svc"), (await cluster.nodes)[2]
            await cluster.move_coordinator(group, to=node)
            assert await cluster.coordinator(group) == node
            puppet = await group.create_puppet("p", topics=["orders"])
            await (await puppet.join()).wait_state("stable")
            topic = cluster.topic("orders")
            await group.set_offsets({(topic, 0): 5})
            await group.assert_committed({(topic, 0): 5})
            assert topic in await cluster.topics()
            assert len(await topic.partitions) == 4
            assert [each.kind for each in await group.advance("1h", expire=[puppet])] == ["session"]
            with pytest.raises(InvalidArgument, match="must be a string, Member or Puppet"):
                await group.evict(3)  # type: ignore[arg-type]

    asyncio.run(use())


def test_an_ambiguous_member_is_refused_with_the_choices() -> None:
    with Simulation(topics={"orders": 4}) as cluster:
        group = cluster.group("svc")
        for name in ("p", "q"):
            group.create_puppet(name, instance_id=name, client_id="app", topics=["orders"]).join()
        group.wait_stable(members=2)
        with pytest.raises(ValueError, match=r"'app' names several members of group 'svc': use one of 'p', 'q'"):
            group.evict("app")


@pytest.mark.parametrize("name", ["member id", "instance id", "client id"])
def test_an_assignment_names_its_members_in_any_way(name: str) -> None:
    with Simulation(topics={"orders": 2}) as cluster:
        group = cluster.group("svc")
        puppet = (
            group.create_puppet("p", instance_id="i", client_id="app", topics=["orders"]).join().wait_state("stable")
        )
        group.assert_assignment({NAMES[name](puppet, group): {"orders": [0, 1]}})


# -- ownership ---


def test_an_empty_first_generation_fails_with_the_wait_that_the_next_one_passes() -> None:
    with Simulation() as cluster:
        group = cluster.group("svc")
        # as kafka-python, which may join before it has read the metadata of its topics
        group.create_puppet("a", topics=["orders"]).join()
        group.wait_stable(members=1)
        cluster.create_topic("orders", partitions=2)
        with pytest.raises(AssertionError, match=r"has no owner\n  wait_stable\(all_owned=True\) waits for it"):
            group.assert_owned_exactly_once()
        group.rebalance()
        group.wait_stable(members=1, all_owned=True).assert_owned_exactly_once()


def test_no_page_and_no_example_asserts_ownership_right_after_a_bare_wait() -> None:
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("examples/**/*.py")]
    bare = re.compile(r"wait_stable\((?![^)]*owned=)[^)]*\)\s*\.assert_owned_exactly_once\((?![^)]*timeout=)")
    assert [page.name for page in pages if bare.search(page.read_text(encoding="utf-8"))] == []


# -- records ---


def test_a_list_of_records_is_its_records(cluster: Cluster) -> None:
    assert cluster.produce("orders", ["a", b"b", ("k", "v"), {"value": "m"}]) == 4
    assert cluster.produce("orders", "c", ["d"], ("k", None), (str(n) for n in range(2))) == 5
    values = sorted(record.value or b"" for record in cluster.records("orders"))
    assert values == [b"", b"0", b"1", b"a", b"b", b"c", b"d", b"m", b"v"]
