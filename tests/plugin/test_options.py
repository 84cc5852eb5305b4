"""The options of a run and the precedence of the places that give them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from koordinator import Emulator
from koordinator.fixtures.options import ARGUMENTS, OPTIONS

if TYPE_CHECKING:
    from koordinator.emulator.config.options import Option

PLACES = ("ini", "config", "environment", "command line", "marker", "argument")
"""The places, from the lowest precedence to the highest."""

TEST = """
import pytest

@pytest.mark.koordinator({marker})
def test_it(koordinator_factory):
    cluster = koordinator_factory({argument})
    assert len(cluster.nodes) == {expected}
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest("-p", "no:hypothesispytest", *arguments)


def test_the_marker_takes_the_arguments_of_the_emulator_and_leaks() -> None:
    assert set(ARGUMENTS) == {*inspect.signature(Emulator).parameters, "leaks"}


@pytest.mark.parametrize("place", PLACES)
def test_a_nearer_place_overrides_a_farther_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    value = {each: number for number, each in enumerate(PLACES[: PLACES.index(place) + 1], start=1)}
    if "ini" in value:
        pytester.makeini(f"[pytest]\nkoordinator_brokers = {value['ini']}")
    config = f"{{'brokers': {value['config']}}}" if "config" in value else "{}"
    pytester.makeconftest(f"import pytest\n@pytest.fixture(scope='session')\ndef koordinator_config(): return {config}")
    if "environment" in value:
        monkeypatch.setenv("KOORDINATOR_BROKERS", str(value["environment"]))
    on_command_line = [f"--koordinator-brokers={value['command line']}"] if "command line" in value else []
    marker, argument = (f"brokers={value[each]}" if each in value else "" for each in ("marker", "argument"))
    pytester.makepyfile(TEST.format(marker=marker, argument=argument, expected=value[place]))
    run(pytester, *on_command_line).assert_outcomes(passed=1)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_has_one_name_in_all_places(pytester: pytest.Pytester, option: Option) -> None:
    assert option.pytest_flag == f"--koordinator-{option.name}".replace("_", "-")
    assert option.variable == f"KOORDINATOR_{option.name.upper()}"
    assert option.ini == f"koordinator_{option.name}"
    help_text = " ".join(run(pytester, "--help").stdout.str().split())
    assert f"{option.pytest_flag}={option.pytest_metavar} " in help_text
    assert f"{option.ini} (string): " in help_text


MISTAKES = {
    "--koordinator-leaks=wran": "*--koordinator-leaks=wran: must be one of ignore, warn, error; did you mean 'warn'?",
    "--koordinator-seed=many": "*--koordinator-seed=many: must be an integer from 0",
    "--koordinator-brokers=0": "*--koordinator-brokers=0: must be an integer from 1 to 100",
    "--koordinator-backend=kafka": "*--koordinator-backend=kafka and --koordinator-bootstrap=HOST:PORT need each other",
    "--koordinator-bootstrap=a:1": "*--koordinator-backend=kafka and --koordinator-bootstrap=HOST:PORT need each other",
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
    run(pytester).stderr.fnmatch_lines(["*koordinator_trace=onn: must be one of off, on, *; did you mean 'on'?"])
    monkeypatch.setenv("KOORDINATOR_TRACE", "of")
    run(pytester).stderr.fnmatch_lines(["*KOORDINATOR_TRACE=of: must be one of off, on, *; did you mean 'off'?"])
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


def test_the_seed_of_the_run_determines_those_of_its_clusters(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=SEEDS)
    fixed, one, two = seeds_of(pytester, "--koordinator-seed=5")
    assert fixed == "fixed[7, 8]"
    of_one, of_two = one.removeprefix("one")[1:-1].split(", "), two.removeprefix("two")[1:-1].split(", ")
    assert len({*of_one, *of_two}) == 3
    assert seeds_of(pytester, "--koordinator-seed=5", "test_it.py::test_two") == [two]
    assert seeds_of(pytester, "--koordinator-seed=6", "test_it.py::test_two") != [two]
    assert seeds_of(pytester, "test_it.py::test_two") != seeds_of(pytester, "test_it.py::test_two")


def test_under_xdist_all_workers_use_the_seed_of_the_header(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SEEDS)
    result = pytester.runpytest_subprocess("-n", "2", timeout=170)
    (header,) = (line for line in result.outlines if line.startswith("koordinator: "))
    seen = sorted(pytester.path.joinpath("seeds").read_text().splitlines())
    assert seeds_of(pytester, header.removeprefix("koordinator: ")) == seen


def test_a_seed_on_the_command_line_overrides_the_config_but_not_a_marker(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=SEEDS)
    pytester.makeconftest(
        "import pytest\n@pytest.fixture(scope='session')\ndef koordinator_config(): return {'seed': 1}"
    )
    assert seeds_of(pytester) == ["fixed[7, 8]", "one[1, 1]", "two[1]"]
    fixed, one, two = seeds_of(pytester, "--koordinator-seed=5")
    assert (fixed, one == "one[1, 1]", two == "two[1]") == ("fixed[7, 8]", False, False)
