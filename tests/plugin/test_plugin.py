"""The fixtures and the marker in a user's project, with mistakes."""

from __future__ import annotations

import subprocess
import sys

import pytest

import koordinator.handles.emulator  # noqa: F401 - once, instead of anew in each inner run


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest on the test's project, without Hypothesis's plugin, which takes a second to load."""
    return pytester.runpytest("-p", "no:hypothesispytest", *arguments)


def test_each_test_gets_a_fresh_cluster_on_its_own_port(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket

        seen = []

        def connect(cluster):
            host, _, port = cluster.bootstrap_servers.rpartition(":")
            socket.create_connection((host, int(port)), timeout=60).close()

        def test_one(koordinator):
            koordinator.create_topic("orders", partitions=2, records=3)
            connect(koordinator)
            seen.append(koordinator)

        def test_two(koordinator):
            assert koordinator.topics() == []
            connect(koordinator)
            seen.append(koordinator)

        def test_both_have_stopped():
            assert seen[0].seed != seen[1].seed
            for cluster in seen:
                try:
                    connect(cluster)
                except ConnectionRefusedError:
                    continue
                raise AssertionError("still there")
        """
    )
    run(pytester).assert_outcomes(passed=3)


def test_the_factory_starts_more_clusters_and_stops_them_all(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import threading

        def running():
            return sum(thread.name == "koordinator" for thread in threading.enumerate())

        def test_three(koordinator, koordinator_factory):
            one = koordinator_factory()
            two = koordinator_factory(topics={"orders": 4}, seed=9)
            assert two.seed == 9
            assert len({koordinator.bootstrap_servers, one.bootstrap_servers, two.bootstrap_servers}) == 3
            one.stop()
            assert running() == 2

        def test_nothing_is_left():
            assert running() == 0
        """
    )
    run(pytester).assert_outcomes(passed=2)


def test_arguments_override_the_nearer_marker_the_farther_marker_and_the_config(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def koordinator_config():
            return {"seed": 1, "topics": {"all": 1}, "config": {"group.max.size": 1, "num.partitions": 5}}
        """
    )
    pytester.makepyfile(
        """
        import pytest

        def wished(cluster):
            parts = cluster._port.served
            settings = parts.settings
            return cluster.seed, settings.group_max_size, settings.num_partitions, sorted(parts.cluster.topics)

        def test_config(koordinator):
            assert wished(koordinator) == (1, 1, 5, ["all"])

        @pytest.mark.koordinator(seed=2, config={"group.max.size": 2}, topics={"class": 1})
        class TestClass:
            def test_class(self, koordinator):
                assert wished(koordinator) == (2, 2, 5, ["all", "class"])

            @pytest.mark.koordinator(seed=3, config={"group.max.size": 3})
            def test_function(self, koordinator):
                assert wished(koordinator) == (3, 3, 5, ["all", "class"])

            @pytest.mark.koordinator(seed=3)
            def test_factory(self, koordinator_factory):
                cluster = koordinator_factory(seed=4, config={"group.max.size": 4})
                assert wished(cluster) == (4, 4, 5, ["all", "class"])
        """
    )
    run(pytester, "--strict-markers").assert_outcomes(passed=4)


MARK = "@pytest.mark.koordinator"

MISTAKES = {
    "topcis={'a': 1}": f"{MARK}: unknown argument 'topcis'; did you mean 'topics'?; known: host,",
    "zzz=1": f"{MARK}: unknown argument 'zzz'; known: host, port,",
    "'a'": f"{MARK} takes arguments by name, such as topics={{'orders': 4}}, not 'a'",
    "**{'group.max.size': 2}": f"{MARK}: unknown argument 'group.max.size'; broker configs go into config=",
    "config={'group.max.sise': 2}": "koordinator: group.max.sise=2: not a setting of a Kafka broker; did you mean",
    "config={'group.max.size': 'many'}": "koordinator: group.max.size=many: must be an integer from 1",
    "topics={'orders': 0}": "koordinator: topic 'orders': a topic has at least 1 partition, not 0",
    "topics=['orders']": "koordinator: Emulator: topics=[[]'orders']: must be a mapping of string to integer",
    "host='no.such.host.invalid'": "koordinator: *cannot listen on no.such.host.invalid:0",
}


@pytest.mark.parametrize(("marker", "message"), MISTAKES.items(), ids=MISTAKES.keys())
def test_a_mistake_in_the_marker_is_an_error_of_one_line(pytester: pytest.Pytester, marker: str, message: str) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.koordinator({marker})
        def test_it(koordinator):
            raise SystemExit("never reached")

        def test_another(koordinator):
            pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([f"*UsageError: {message}*"])


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("None", "koordinator_config must return a dict of arguments of Emulator, not None"),
        ("{'max_size': 2}", "koordinator_config: unknown argument 'max_size'; known: host,*"),
    ],
)
def test_a_mistake_in_the_config_is_an_error_of_one_line(
    pytester: pytest.Pytester, returned: str, message: str
) -> None:
    pytester.makeconftest(
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def koordinator_config():
            return {returned}
        """
    )
    pytester.makepyfile("def test_it(koordinator): pass")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*UsageError: {message}"])


def test_a_mistake_in_a_call_of_the_factory_is_an_error_of_one_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(koordinator_factory): koordinator_factory(sed=1)")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*UsageError: koordinator_factory: unknown argument 'sed'; did you mean 'seed'?*"])


def test_a_group_that_does_not_become_stable_fails_the_test_with_its_story(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(koordinator): koordinator.group('g').wait_stable(members=1, timeout=0.01)")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *GroupTimeout: group 'g' was not stable with 1 member within 0.01 s",
            "E *now: Dead, generation -1, 0 members",
            "E *it has no events",
        ]
    )


def test_a_cluster_that_died_is_an_error_of_its_test_only(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it(koordinator):
            koordinator._port._token.run_sync_soon(koordinator._port._nursery.start_soon, dying)

        async def dying():
            raise AssertionError("a bug of ours")

        def test_another(koordinator):
            assert koordinator.groups() == []
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*AssertionError: a bug of ours"])


def test_the_marker_and_the_fixtures_are_documented(pytester: pytest.Pytester) -> None:
    run(pytester, "--markers").stdout.fnmatch_lines(["@pytest.mark.koordinator(host, port, brokers, *"])
    run(pytester, "--fixtures").stdout.fnmatch_lines(
        ["koordinator_config *", "koordinator_factory *", "koordinator -- *"]
    )


def test_the_plugin_alone_does_not_import_the_emulator() -> None:
    heavy = "('trio', 'construct', 'crc32c', 'click', 'rich', 'koordinator.emulator.core', 'koordinator.wire.apis')"
    code = f"import sys, koordinator.fixtures.plugin; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"


def test_under_xdist_every_worker_has_its_own_clusters(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(20))
        def test_it(koordinator, number):
            koordinator.produce("orders", str(number))
            assert [record.value for record in koordinator.records("orders")] == [str(number).encode()]
        """
    )
    pytester.runpytest_subprocess("-n", "2", timeout=170).assert_outcomes(passed=20)
