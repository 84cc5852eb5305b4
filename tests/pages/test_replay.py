"""Copy as test: the test of every scene passes, and its members end in the same states."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import pytest
from browsing.recorded_traces import NAMES, crowd, lines_of, with_faults
from scenes.short_groups import SHORT, played

from koordinator import Simulation
from koordinator.emulator.pages.lane import Lane
from koordinator.emulator.pages.lanes import lanes_of
from koordinator.emulator.pages.replay import source_of_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenes.short_groups import Lines


SCENES: dict[str, Callable[[], Lines]] = {
    **{name: lambda name=name: lines_of(name) for name in NAMES},  # type: ignore[misc]
    "crowd": lambda: crowd(members=3, events=400),
    "with_faults": with_faults,
    **{scene.__name__: lambda scene=scene: played(scene) for scene in SHORT},  # type: ignore[misc]
}


@pytest.mark.parametrize("scene", SCENES)
def test_the_copied_test_of_every_scene_passes(scene: str) -> None:
    (group,) = lanes_of(line for line in SCENES[scene]() if line["kind"] != "header").values()
    names: dict[str, Any] = {}
    exec(compile(source_of_test(group), scene, "exec"), names)  # noqa: S102 - the source that the pages offer
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    with Simulation() as cluster:
        test(cluster)
        cluster.pass_time(3)
        replayed = lanes_of(line for line in cluster._port.trace_lines() if line["kind"] != "header")[group.id]
    members = {lane.id for lane in replayed.lanes.values() if lane.is_member}
    assert members == {lane.id for lane in group.lanes.values() if lane.is_member}


@pytest.mark.parametrize(
    "names",
    [("class", "def"), ("group", "koordinator"), ("A", "a", "a!", "a_2"), ("\0", "1", "é", '"', "\\"), ("True",)],
    ids=str,
)
def test_every_member_has_an_identifier_of_its_own(names: tuple[str, ...]) -> None:
    lanes = {name: Lane(name, index, name) for index, name in enumerate(names)}
    for lane in lanes.values():
        lane.actions.append((0, "join"))
    source = source_of_test(cast("Any", SimpleNamespace(id="class", lanes=lanes, owners={}, fences=[], story=STORY)))
    named: dict[str, Any] = {}
    exec(compile(source, "test", "exec"), named)  # noqa: S102 - the source that the pages offer
    puppets: dict[str, Any] = {}
    group = SimpleNamespace(create_puppet=lambda name, **_: puppets.setdefault(name, Mock()))
    named["test_class"](SimpleNamespace(group=lambda _: group))
    assert set(puppets) == set(names)
    assert all(puppet.join.call_count == 1 for puppet in puppets.values())


STORY = SimpleNamespace(rebalances=[])
