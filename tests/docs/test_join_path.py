"""ARCHITECTURE.md follows a JoinGroup through the modules that a real one passes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from brokers.word_broker import EPOCH, LIMIT_S, connect
from trio.testing import MockClock, wait_all_tasks_blocked

from koordinator.emulator.config.options import Options
from koordinator.emulator.server.build import build_cluster
from koordinator.emulator.server.server import Server
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.frames import frame, read_response_header, request_header
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse

if TYPE_CHECKING:
    from types import FrameType

PAGE = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
WALK = PAGE.split("## One JoinGroup", 1)[1].split("\n## ", 1)[0]
MODULES_MAX = 12
VERSION = 9

MOMENTS = {
    "wire/frames.py": {"next_frame", "read_request_header", "response_header"},
    "wire/codec.py": {"decode", "encode_frame"},
    "emulator/broker/api_table.py": {"_join_group_request", "_join_group_response"},
    "emulator/core/groups/classic/group.py": {"add", "take_join"},
    "emulator/core/groups/classic/transitions.py": {"next_state"},
    "emulator/core/groups/classic/changes.py": {"park_join"},
    "emulator/core/groups/group_store.py": {"reply"},
    "emulator/server/streams.py": {"read", "put"},
}
"""The functions that read, decode, admit, park, answer, encode and send, by module."""


def path_of(at: FrameType) -> str | None:
    """Return the file of a frame as ARCHITECTURE.md names it; None outside koordinator."""
    name = str(at.f_globals.get("__name__"))
    return name.removeprefix("koordinator.").replace(".", "/") + ".py" if name.startswith("koordinator.") else None


class Stacks:
    """Collects the call stacks of the moments: the modules where a moment happens, and those that called it."""

    def __init__(self) -> None:
        self.callers: set[str] = set()
        self.moments: set[tuple[str, str]] = set()

    def __call__(self, at: FrameType, event: str, _: Any) -> None:
        path = path_of(at)
        if event != "call" or path is None or at.f_code.co_name not in MOMENTS.get(path, ()):
            return
        message = at.f_locals.get("cls") or type(at.f_locals.get("message"))
        if path == "wire/codec.py" and message not in (JoinGroupRequest, JoinGroupResponse):
            # a record of `__consumer_offsets`
            return
        self.moments.add((path, at.f_code.co_name))
        caller = at.f_back
        while caller is not None:
            other = path_of(caller)
            if other is not None and other != path:
                self.callers.add(other)
            caller = caller.f_back

    @property
    def leaves(self) -> set[str]:
        """The modules that end every stack on which they are."""
        return {path for path, _ in self.moments} - self.callers


async def join(client: trio.SocketStream, member_id: str) -> JoinGroupResponse:
    """Send a JoinGroup and return its response."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(protocol,),
    )
    await client.send_all(frame(request_header(ApiKey.JOIN_GROUP, VERSION, 1, "c"), encode(request, VERSION)))
    response = bytes(await client.receive_some())[4:]
    _, body = read_response_header(ApiKey.JOIN_GROUP, VERSION, response)
    return decode(JoinGroupResponse, VERSION, response, begin=body, exact=True)


def joined() -> Stacks:
    """Let a member join an empty group: without an id, with the id of the first response, and once more (KIP-394)."""
    stacks = Stacks()

    async def main() -> None:
        runtime = build_cluster(Options(seed=1), lambda: EPOCH * 1000).runtime
        server = Server(runtime, EPOCH)
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(server.serve, [])
                async with connect(server) as ours:
                    await wait_all_tasks_blocked()
                    sys.setprofile(stacks)
                    try:
                        refused = await join(ours, "")
                        first, again = [await join(ours, refused.member_id) for _ in range(2)]
                    finally:
                        sys.setprofile(None)
                nursery.cancel_scope.cancel()
        assert refused.error_code == Error.MEMBER_ID_REQUIRED
        assert (first.error_code, first.generation_id, first.leader) == (0, 1, refused.member_id)
        assert (again.error_code, again.generation_id) == (0, 1)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return stacks


@pytest.mark.slow
def test_a_join_group_is_passed_on_by_few_modules_and_the_page_names_them() -> None:
    """A module passes it on if it is on the stack of a moment, and not always at its end; the others are leaves."""
    stacks = joined()
    assert stacks.moments == {(path, name) for path, names in MOMENTS.items() for name in names}
    assert stacks.callers == set(re.findall(r"^\d+\. \*\*`([\w/]+\.py)`", WALK, re.MULTILINE))
    assert len(stacks.callers) <= MODULES_MAX
    assert {path.split("/")[-1].removesuffix(".py") for path in stacks.leaves} == set(
        re.findall(r"`(\w+)`", WALK.split("leaves", 1)[1].split("\n\n")[0])
    )
