"""ARCHITECTURE.md follows a ConsumerGroupHeartbeat through the modules that a real one passes, in their order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenes.consumer_play import ConsumerPlay

if TYPE_CHECKING:
    from types import FrameType

WALK = (
    (Path(__file__).parents[2] / "ARCHITECTURE.md")
    .read_text(encoding="utf-8")
    .split("## One ConsumerGroupHeartbeat", 1)[1]
    .split("\n## ", 1)[0]
)
ROOM = "koordinator.emulator."


def test_a_first_heartbeat_passes_the_modules_of_the_page_in_their_order() -> None:
    play, passed = ConsumerPlay(), dict[str, None]()

    def note(at: FrameType, event: str, _: Any) -> None:
        name = str(at.f_globals.get("__name__"))
        if event == "call" and name.startswith(ROOM) and at.f_code.co_name not in ("create", "__init__"):
            passed[name.removeprefix(ROOM)] = None

    sys.setprofile(note)
    try:
        assert play.subscribe("a") == (2, {"t": [0, 1, 2, 3]})
    finally:
        sys.setprofile(None)
    steps = [step.replace("/", ".") for step in re.findall(r"^\d+\. \*\*`([\w/]+)\.py`", WALK, re.MULTILINE)]
    assert [name for name in passed if name in steps] == steps
    helpers = re.findall(r"`(\w+)`", WALK.split("1.", 1)[1])
    assert {f"core.groups.consumer.{name}" for name in helpers} <= set(passed)
