"""`--koordinator-explore=N`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import koordinator.handles.emulator  # noqa: F401 - once, instead of anew in each inner run

if TYPE_CHECKING:
    import pytest

TESTS = """
import pathlib
import pytest

def note(what):
    with open("notes", "a") as file:
        file.write(f"{what}\\n")

@pytest.fixture(scope="session")
def wide():
    note("wide begins")
    yield
    note("wide ends")

@pytest.fixture
def narrow():
    note("narrow begins")
    yield
    note("narrow ends")

def test_good(koordinator, wide, narrow):
    print("said")
    note(koordinator.seed)

def test_without(narrow):
    note("once")

def test_fails_at_the_third(koordinator, request):
    print("said")
    note("third")
    runs = pathlib.Path("notes").read_text().count("third")
    assert runs < 3
"""


def notes(pytester: pytest.Pytester) -> list[str]:
    return pytester.path.joinpath("notes").read_text().splitlines()


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=TESTS)
    pytester.path.joinpath("notes").write_text("")
    return pytester.runpytest("-p", "no:hypothesispytest", "--koordinator-seed=100", *arguments)


def test_a_test_with_a_cluster_runs_once_per_seed_with_new_fixtures(pytester: pytest.Pytester) -> None:
    run(pytester, "--koordinator-explore=5", "-k", "good or without").assert_outcomes(passed=2)
    shape = ["a seed" if each.isdigit() else each for each in notes(pytester)]
    each_time = ["narrow begins", "a seed", "narrow ends"]
    assert shape == ["wide begins", *each_time * 5, "narrow begins", "once", "narrow ends", "wide ends"]
    assert len({each for each in notes(pytester) if each.isdigit()}) == 5


def test_wider_fixtures_stay_between_attempts_even_for_the_last_test(pytester: pytest.Pytester) -> None:
    run(pytester, "--koordinator-explore=5", "-k", "good").assert_outcomes(passed=1)
    assert [each for each in notes(pytester) if each.startswith("wide")] == ["wide begins", "wide ends"]


def test_it_stops_at_the_first_failing_seed_and_shows_the_rerun_command(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--koordinator-explore=5", "-k", "third")
    result.assert_outcomes(failed=1)
    assert notes(pytester) == ["third"] * 3
    result.stdout.fnmatch_lines(
        [
            "*- koordinator timeline -*",
            "full trace: test-results/test_it-test_fails_at_the_third-seed102/trace*",
            "failing seed: 102 (attempt 3)",
            "rerun: pytest test_it.py::test_fails_at_the_third --koordinator-seed=102 --koordinator-explore=1",
        ]
    )
    assert result.stdout.str().count("said") == 2, "in the source, and what the run that failed has printed"
    assert sorted(path.name for path in pytester.path.glob("test-results/*")) == [
        "test_it-test_fails_at_the_third-seed102"
    ]


def test_the_command_repeats_the_clusters_of_the_run_that_failed(pytester: pytest.Pytester) -> None:
    run(pytester, "--koordinator-explore=5", "-k", "good")
    seeds = [each for each in notes(pytester) if each.isdigit()]
    pytester.path.joinpath("notes").write_text("")
    pytester.runpytest("test_it.py::test_good", "--koordinator-seed=103", "--koordinator-explore=1")
    assert [each for each in notes(pytester) if each.isdigit()] == [seeds[3]]


def test_wider_fixtures_end_after_a_failure_as_they_would_have(pytester: pytest.Pytester) -> None:
    module = """
    import pytest

    @pytest.fixture(scope="module")
    def wide():
        yield
        raise RuntimeError("the end of {name}")

    def test_it(koordinator, wide):
        assert not 1
    """
    pytester.makepyfile(test_a=module.format(name="a"), test_b=module.format(name="b"))
    result = pytester.runpytest("-p", "no:hypothesispytest", "--koordinator-explore=3")
    result.assert_outcomes(failed=2, errors=2)
    result.stdout.fnmatch_lines_random(["E *RuntimeError: the end of a", "E *RuntimeError: the end of b"])


OTHERS = """
import pytest

def test_skipped(koordinator):
    print("skips")
    pytest.skip("no reason")

@pytest.mark.xfail(strict=True)
def test_expected(koordinator):
    assert not 1

@pytest.fixture
def broken():
    raise RuntimeError("before there is a cluster")

def test_broken(broken, koordinator):
    pass
"""


def test_a_failing_first_run_is_not_repeated(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=OTHERS)
    result = pytester.runpytest("-p", "no:hypothesispytest", "--koordinator-explore=9", "--koordinator-seed=5")
    result.assert_outcomes(skipped=1, xfailed=1, errors=1)
    result.stdout.fnmatch_lines(["failing seed: 5 (attempt 1)", "rerun: pytest *::test_broken --koordinator-seed=5 *"])


def test_it_works_over_several_processes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=TESTS)
    result = pytester.runpytest_subprocess("-n", "2", "--koordinator-explore=4", "--koordinator-seed=7", timeout=170)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["failing seed: 9 (attempt 3)"])


RACE = """
def test_it(koordinator):
    group = koordinator.group("svc")
    for name in ("a", "b"):
        group.puppet(name, instance_id=name).join()
    group.wait_stable(members=2)
    assert [member.label for member in group.members] == ["a", "b"]
"""


def test_a_race_that_is_usually_won_is_lost_with_some_seed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=RACE)
    pytester.runpytest("-p", "no:hypothesispytest").assert_outcomes(passed=1)
    result = pytester.runpytest("-p", "no:hypothesispytest", "--koordinator-explore=50", "--koordinator-seed=1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["failing seed: * (attempt *)"])
