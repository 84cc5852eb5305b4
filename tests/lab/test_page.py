"""The page of the laboratory: its axes, its advice, and the sources that it names."""

from __future__ import annotations

import re

import laboratory
import pytest

from koordinator.lab.advice import CHOICES, WISHES, advice, needed
from koordinator.lab.cells import Cell, CellResult
from koordinator.lab.claims import CLAIMS
from koordinator.lab.figures import Figures
from koordinator.lab.load import Load
from koordinator.lab.record import FactKind, RunRecord
from koordinator.lab.schemes import SCHEMES
from koordinator.lab.situations import SITUATIONS
from koordinator.lab.sources import SOURCES, names_in, users_of
from koordinator.lab.timeline import BEFORE_MS, LEFT, TICKS_MAX, WIDTH, picture, ticks

LOAD = Load()
NOTHING = dict.fromkeys(Figures.__slots__, 0)


def result(scheme: str, situation: str, load: Load = LOAD, **figures: float | None) -> CellResult:
    """A cell whose other figures are 0."""
    values: dict[str, float | None] = NOTHING | figures
    return CellResult(Cell(scheme, situation, load), (Figures(**values),))  # type: ignore[arg-type]


@pytest.mark.parametrize("until_s", [5, 7.3, 44.4, 61, 305, 706, 4000, 100_000])
def test_ticks_are_round_and_few(until_s: float) -> None:
    axis = ticks(until_s)
    assert axis[0] == 0
    assert 2 <= len(axis) <= TICKS_MAX + 1
    assert until_s - axis.step < axis[-1] <= until_s
    assert re.fullmatch(r"[1236]0*|50*|120*|180*|1?[0-9]+00", str(axis.step))


def test_a_label_of_the_axis_stands_at_its_time() -> None:
    record = RunRecord()
    record.add(0, FactKind.UP, "a")
    record.add(0, FactKind.HOLDS, "a", (0, 1))
    record.begin(10_000)
    record.add(42_300, FactKind.HOLDS, "a", (0,))
    svg = picture(record, 100_000)
    shown_ms = BEFORE_MS + 32_300 + 5_000
    labels = re.findall(r'<text x="([\d.]+)" y="38" text-anchor="middle">([\d,]+) s</text>', svg)
    assert [text for _, text in labels] == ["0", "5", "10", "15", "20", "25", "30", "35"]
    for at, text in labels:
        assert float(at) == pytest.approx(LEFT + (BEFORE_MS + 1000 * int(text)) * WIDTH / shown_ms, abs=0.1)
    assert "P1 a, -2 s to 32.3 s" in svg


def test_advice_is_the_protocol_with_the_least_figure_of_this_load() -> None:
    cells = [result(scheme, "crash", idle_s=10.0 + at) for at, scheme in enumerate(CHOICES)]
    assert advice(cells)[0].choice == CHOICES["eager"]
    cells[0] = result("eager", "crash", idle_s=90.0)
    first = advice(cells)[0]
    assert first.choice == CHOICES["static"]
    assert first.figures.startswith("idle (partition-s): 11 with `static`; 12 with `cooperative`")
    assert first.figures.endswith("90 with `eager`")


def test_equal_protocols_are_named_together_or_not_at_all() -> None:
    row = advice([result("eager", "crash", idle_s=3.0), result("static", "crash", idle_s=3.0)])[0]
    assert row.choice == "any: there is no difference"
    cells = [
        result(scheme, "crash", idle_s=idle) for scheme, idle in (("eager", 3.0), ("static", 3.0), ("consumer", 9.0))
    ]
    assert advice(cells)[0].choice == f"{CHOICES['eager']}; or {CHOICES['static']}"


@pytest.mark.parametrize(
    ("restart_s", "choice"),
    [(10.0, "the session timeout is long enough"), (60.0, "a session timeout above the restart")],
)
def test_static_members_need_a_session_longer_than_a_restart(restart_s: float, choice: str) -> None:
    (row,) = advice([result("static", "bounce", Load(restart_s=restart_s))])
    assert row.choice.startswith(choice)
    assert f"a restart takes {restart_s:g} s, a session lasts 45 s" in row.figures


def test_the_committed_run_answers_every_wish() -> None:
    rows = advice(laboratory.results())
    assert [row.condition for row in rows[: len(WISHES)]] == [wish.text for wish in WISHES]
    assert len(rows) == len(WISHES) + 3
    schemes, situations = needed()
    few = [each for each in laboratory.results() if each.cell.scheme in schemes and each.cell.situation in situations]
    assert advice(few) == rows


def test_every_scheme_and_situation_has_a_source_with_a_title() -> None:
    for info in (*SCHEMES.values(), *SITUATIONS.values()):
        assert names_in(info.source), info.source
    places = {claim.place.partition(",")[0] for claim in CLAIMS.values()}
    assert places - {"article"} <= SOURCES.keys()
    assert all(users_of(name, SCHEMES, SITUATIONS) for name in SOURCES.keys() - places)
