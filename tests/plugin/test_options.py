"""What can be chosen for a run, in each of the places, and which place counts."""

from __future__ import annotations

import inspect

import pytest

from koordinator import Emulator
from koordinator.fixtures.options import ARGUMENTS, OPTIONS

PLACES = ("ini", "config", "environment", "command line", "marker", "argument")
"""From the last that counts to the first."""

TEST = """
import pytest

@pytest.mark.koordinator({marker})
def test_it(koordinator_factory):
    cluster = koordinator_factory({argument})
    assert len(cluster.nodes) == {expected}
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest("-p", "no:hypothesispytest", *arguments)


def test_the_arguments_the_marker_may_have_are_those_of_the_emulator() -> None:
    assert list(ARGUMENTS) == list(inspect.signature(Emulator).parameters)


@pytest.mark.parametrize("place", PLACES)
def test_a_nearer_place_comes_before_a_farther_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    said = {each: number for number, each in enumerate(PLACES[: PLACES.index(place) + 1], start=1)}
    if "ini" in said:
        pytester.makeini(f"[pytest]\nkoordinator_brokers = {said['ini']}")
    config = f"{{'brokers': {said['config']}}}" if "config" in said else "{}"
    pytester.makeconftest(f"import pytest\n@pytest.fixture(scope='session')\ndef koordinator_config(): return {config}")
    if "environment" in said:
        monkeypatch.setenv("KOORDINATOR_BROKERS", str(said["environment"]))
    on_command_line = [f"--koordinator-brokers={said['command line']}"] if "command line" in said else []
    marker, argument = (f"brokers={said[each]}" if each in said else "" for each in ("marker", "argument"))
    pytester.makepyfile(TEST.format(marker=marker, argument=argument, expected=said[place]))
    run(pytester, *on_command_line).assert_outcomes(passed=1)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_has_one_name_in_all_places(pytester: pytest.Pytester, option: object) -> None:
    stem = option.name
    assert option.flag == f"--koordinator-{stem}".replace("_", "-")
    assert option.variable == f"KOORDINATOR_{stem.upper()}"
    assert option.ini == f"koordinator_{stem}"
    assert option.argument in {None, stem}
    help_text = " ".join(run(pytester, "--help").stdout.str().split())
    assert f"{option.flag}={option.shown} " in help_text
    assert f"{option.ini} (string): " in help_text


MISTAKES = {
    "--koordinator-leaks=wran": "*--koordinator-leaks=wran: must be one of ignore, warn, error; did you mean warn?",
    "--koordinator-seed=many": "*--koordinator-seed=many: must be an integer from 0",
    "--koordinator-brokers=0": "*--koordinator-brokers=0: must be an integer from 1",
    "--koordinator-backend=kafka": "*--koordinator-backend=kafka and --koordinator-bootstrap=HOST:PORT go together",
    "--koordinator-bootstrap=a:1": "*--koordinator-backend=kafka and --koordinator-bootstrap=HOST:PORT go together",
}


@pytest.mark.parametrize(("argument", "message"), MISTAKES.items())
def test_a_mistake_stops_the_run_with_its_place_and_the_remedy(
    pytester: pytest.Pytester, argument: str, message: str
) -> None:
    result = run(pytester, argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_a_mistake_in_the_environment_or_the_ini_file_names_the_place(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nkoordinator_trace = onn")
    run(pytester).stderr.fnmatch_lines(["*koordinator_trace=onn: must be one of off, on, *; did you mean on?"])
    monkeypatch.setenv("KOORDINATOR_TRACE", "of")
    run(pytester).stderr.fnmatch_lines(["*KOORDINATOR_TRACE=of: must be one of off, on, *; did you mean off?"])
    monkeypatch.setenv("KOORDINATOR_TRACE", "")
    run(pytester, "--koordinator-trace=off").stdout.fnmatch_lines(["*no tests ran*"])


# -- the seed ------------------------------------------------------------------------------------------------

SEEDS = """
import pathlib, pytest

def write(name, *clusters):
    with open("seeds", "a") as file:
        file.write(name + str([cluster.seed for cluster in clusters]) + chr(10))

def test_one(koordinator, koordinator_factory):
    write("one", koordinator, koordinator_factory())

def test_two(koordinator):
    write("two", koordinator)

@pytest.mark.koordinator(seed=7)
def test_fixed(koordinator, koordinator_factory):
    write("fixed", koordinator, koordinator_factory(seed=8))
"""


def seeds_of(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    pytester.path.joinpath("seeds").unlink(missing_ok=True)
    run(pytester, *arguments)
    return sorted(pytester.path.joinpath("seeds").read_text().splitlines())


def test_the_seed_of_the_run_decides_those_of_its_clusters_whatever_else_runs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SEEDS)
    fixed, one, two = seeds_of(pytester, "--koordinator-seed=5")
    assert fixed == "fixed[7, 8]"
    of_one, of_two = one.removeprefix("one")[1:-1].split(", "), two.removeprefix("two")[1:-1].split(", ")
    assert len({*of_one, *of_two}) == 3
    assert seeds_of(pytester, "--koordinator-seed=5", "test_it.py::test_two") == [two]
    assert seeds_of(pytester, "--koordinator-seed=6", "test_it.py::test_two") != [two]
    assert seeds_of(pytester, "test_it.py::test_two") != seeds_of(pytester, "test_it.py::test_two")


def test_under_xdist_all_workers_have_the_seed_in_the_header(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SEEDS)
    result = pytester.runpytest_subprocess("-n", "2", timeout=120)
    (header,) = (line for line in result.outlines if line.startswith("koordinator: "))
    seen = sorted(pytester.path.joinpath("seeds").read_text().splitlines())
    assert seeds_of(pytester, header.removeprefix("koordinator: ")) == seen


def test_a_seed_on_the_command_line_replaces_that_of_the_config_but_not_that_of_a_marker(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=SEEDS)
    pytester.makeconftest(
        "import pytest\n@pytest.fixture(scope='session')\ndef koordinator_config(): return {'seed': 1}"
    )
    assert seeds_of(pytester) == ["fixed[7, 8]", "one[1, 1]", "two[1]"]
    fixed, one, two = seeds_of(pytester, "--koordinator-seed=5")
    assert (fixed, one == "one[1, 1]", two == "two[1]") == ("fixed[7, 8]", False, False)
