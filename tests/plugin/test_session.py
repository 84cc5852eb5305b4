"""`koordinator_session` and `koordinator_aio`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import trio

if TYPE_CHECKING:
    from koordinator import aio
    from koordinator.handles.session import SessionCluster

CLUSTERS: set[str] = set()
NAMES: set[str] = set()


@pytest.mark.parametrize("number", range(3))
def test_tests_share_a_cluster_and_no_name(koordinator_session: SessionCluster, number: int) -> None:
    CLUSTERS.add(koordinator_session.bootstrap_servers)
    orders, svc = koordinator_session.name("orders"), koordinator_session.name("svc")
    assert orders == koordinator_session.name("orders")
    assert orders not in NAMES
    NAMES.add(orders)
    koordinator_session.create_topic(orders, partitions=2, records=number)
    group = koordinator_session.group(svc)
    group.puppet("a", topics=[orders]).join().wait("stable")
    group.wait_stable(members=1, owned="all").assert_owned_exactly_once()
    assert len(group.rebalances()) == 1
    assert len(CLUSTERS) == 1


def run(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(source)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options, timeout=170)


def test_a_name_that_other_tests_see_and_a_member_that_stays_are_leaks(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        from confluent_kafka import Consumer

        OPEN = []

        def test_a_name(koordinator_session):
            koordinator_session.create_topic("orders")
            koordinator_session.group("svc").set_offsets({("orders", 0): 0})

        def test_a_member(koordinator_session):
            cluster = koordinator_session
            topic, svc = cluster.name("orders"), cluster.name("svc")
            cluster.create_topic(topic)
            consumer = Consumer(cluster.client_config("confluent-kafka", group_id=svc, client_id="svc-1"))
            consumer.subscribe([topic])
            OPEN.append(consumer)
            group = cluster.group(svc)
            for _ in range(100):
                consumer.poll(0.1)
                if group.state == "Stable":
                    break
            group.wait_stable(members=1)

        def test_an_earlier_leak_is_not_reported_again(koordinator_session):
            pass
        """,
        "--koordinator-leaks=error",
    )
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*still open when the test ended: group 'svc' is visible to other tests: name it *",
            "*client 'svc-1', member * of group 'svc-????????'.*",
        ]
    )


def test_rules_end_with_their_test_and_unused_ones_fail_it(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        from koordinator import faults

        def test_a_rule(koordinator_session):
            koordinator_session.rule("Heartbeat", faults.drop())

        def test_no_rule(koordinator_session):
            assert koordinator_session.rules == []
        """,
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*rules that were never used*"])


def test_the_report_of_a_failure_has_the_events_of_its_test_only(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def use(cluster):
            group = cluster.group(cluster.name("svc"))
            group.puppet("a").join().wait("stable")

        def test_first(koordinator_session):
            use(koordinator_session)

        def test_second(koordinator_session):
            use(koordinator_session)
            raise SystemExit("the reason")
        """,
    )
    result.assert_outcomes(passed=1, failed=1)
    assert result.stdout.str().count("koordinator timeline (svc-") == 1


def test_the_fixture_for_loops_serves_asyncio(koordinator_aio: aio.Cluster) -> None:
    async def use() -> None:
        await koordinator_aio.produce("orders", ["a"])
        group = koordinator_aio.group("svc")
        await (await (await group.puppet("a")).join()).wait("stable")
        assert await group.state == "Stable"

    asyncio.run(use())


def test_the_fixture_for_loops_serves_trio(koordinator_aio: aio.Cluster) -> None:
    async def use() -> None:
        assert await koordinator_aio.group("svc").state == "Dead"

    trio.run(use)


def test_the_fixture_for_loops_serves_the_plugin_of_trio(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_trio", reason="pytest-trio is not installed")
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.trio
        async def test_it(koordinator_aio):
            group = koordinator_aio.group("svc")
            await (await group.puppet("a")).join()
            await group.wait_stable(members=1)
        """,
    )
    result.assert_outcomes(passed=1)


def test_the_fixture_for_loops_serves_the_plugin_of_anyio(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.anyio
        async def test_it(koordinator_aio):
            assert await koordinator_aio.group("svc").state == "Dead"
        """,
    )
    result.assert_outcomes(passed=2)
