"""Requests in flight and the expected responses, as the scenarios write them.

`expect` compares exactly and returns the response. In an error response every field that the scenario does not name
must be empty; ids are echoed only where the scenario says so.
"""

from __future__ import annotations

from dataclasses import fields
from io import BytesIO
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode
from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_groups import DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from koordinator.wire.messages.heartbeat import HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from koordinator.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from koordinator.wire.messages.offset_delete import OffsetDeleteResponse
from koordinator.wire.messages.offset_fetch import OffsetFetchResponse
from koordinator.wire.messages.sync_group import SyncGroupResponse
from koordinator.wire.primitives import skip_tags
from koordinator.wire.schema import declaration_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator.wire.apis import Message
    from scenarios.targets import PendingFrame, Target

R = TypeVar("R", bound="Message")

RESPONSES: dict[type[Message], type[Message]] = {api.request: api.response for api in APIS.values()}
"""The response type of each request type."""

OMITTED_FIELDS = {"protocols", "protocol_type", "protocol_name", "session_timeout_ms", "rebalance_timeout_ms"}
"""Request fields that failure messages leave out."""

Partition = tuple[str, int]


class PendingRequest(Generic[R]):
    """A request in flight."""

    def __init__(self, target: Target, pending: PendingFrame, request: Message, version: int) -> None:
        self.target = target
        self.request = request
        self.version = version
        self.on_look: Callable[[PendingRequest[Any], R], None] | None = None
        """Called once with each response that a scenario reads."""
        self._pending = pending
        self._looked = False

    def __str__(self) -> str:
        named = {each.name: getattr(self.request, each.name) for each in fields(self.request)}
        said = ", ".join(f"{name}={value!r}" for name, value in named.items() if name not in OMITTED_FIELDS and value)
        return f"{type(self.request).__name__.removesuffix('Request')} v{self.version}({said})"

    @property
    def at(self) -> float | None:
        """Time of the response on the target's clock; None while it is outstanding."""
        return self._pending.at

    @property
    def is_over(self) -> bool:
        """Whether the request was answered, or its connection closed."""
        return self._pending.over

    @property
    def pending(self) -> PendingFrame:
        """The frame in flight."""
        return self._pending

    def answer(self) -> R:
        """Return the response and record it in the transcript."""
        answer = self.unrecorded()
        self._look(answer)
        return answer

    def unrecorded(self) -> R:
        """Return the response without recording it: for answers that Kafka is free to choose."""
        self._await()
        assert not self._pending.closed, f"the connection was closed instead of an answer to {self}"
        assert self._pending.frame is not None
        body = BytesIO(self._pending.frame)
        body.seek(4)
        declared = declaration_of(type(self.request))
        # no tagged fields in any version, so that every client can read it (KIP-511)
        if self.version in declared.flexible and declared.key != ApiKey.API_VERSIONS:
            skip_tags(body)
        response = RESPONSES[type(self.request)]
        return cast("R", decode(response, self.version, body.read(), exact=True))

    def compare(self, answer: object, wanted: Mapping[str, object]) -> None:
        differing = [
            f"  {name}: {_shown(name, getattr(answer, name))}, expected {_shown(name, value)}"
            for name, value in wanted.items()
            if getattr(answer, name) != value
        ]
        assert not differing, "\n".join([f"{self} was answered with", *differing])

    def _await(self) -> None:
        if not self.is_over:
            self.target.pass_time(lambda: self.is_over, self.target.seconds + self.target.slack)
        assert self.is_over, f"not answered: {self}"

    def _look(self, answer: R) -> None:
        if self.on_look is not None and not self._looked:
            self._looked = True
            self.on_look(self, answer)


class PendingWithError(PendingRequest[R]):
    """A response of which scenarios check the error code and single fields."""

    def expect(self, error: int = 0, **expected: object) -> R:
        """Expect this error code and these fields."""
        answer = self.answer()
        self.compare(answer, {"error_code": error, **(self._refused() if error else {}), **expected})
        return answer

    def _refused(self) -> dict[str, object]:
        """Return the fields of an error response."""
        return {}


class PendingJoin(PendingRequest[JoinGroupResponse]):
    def expect(self, error: int = 0, *, members: Iterable[str] = (), **expected: object) -> JoinGroupResponse:
        """Expect a response that lists the members with these ids."""
        answer = self.answer()
        wanted = {"error_code": error, **(self._refused() if error else {}), **expected}
        self.compare(answer, wanted)
        ids = sorted(row.member_id for row in answer.members)
        assert ids == sorted(members), f"{self} was answered with the members {ids}, expected {sorted(members)}"
        return answer

    def _refused(self) -> dict[str, object]:
        # KIP-559: null since version 7
        name = None if self.version >= 7 else ""
        return {
            "generation_id": -1,
            "protocol_type": None,
            "protocol_name": name,
            "leader": "",
            "skip_assignment": False,
            "member_id": "",
        }

    @property
    def metadata(self) -> dict[str, bytes]:
        """The metadata of each member, as the leader receives it."""
        return {row.member_id: row.metadata for row in self.answer().members}


class PendingSync(PendingWithError[SyncGroupResponse]):
    """Fields: assignment, protocol_type, protocol_name."""

    def _refused(self) -> dict[str, object]:
        return {"assignment": b"", "protocol_type": None, "protocol_name": None}


class PendingHeartbeat(PendingWithError[HeartbeatResponse]):
    """A response that has nothing but an error code."""


class PendingLeave(PendingRequest[LeaveGroupResponse]):
    def expect(self, *errors: int, top: int = 0) -> LeaveGroupResponse:
        """Expect one row per named member, in request order and with ids echoed. Versions up to 2 have only the
        top-level error.
        """
        answer = self.answer()
        assert isinstance(self.request, LeaveGroupRequest)
        if self.version < 3:
            (top,) = errors
            rows = []
        else:
            rows = [
                (row.member_id, row.group_instance_id, error)
                for row, error in zip(self.request.members, errors, strict=top == 0)
            ]
        found = [(row.member_id, row.group_instance_id, row.error_code) for row in answer.members]
        assert (answer.error_code, found) == (top, rows), (
            f"{self} was answered with\n  {answer.error_code} {found}, expected\n  {top} {rows}"
        )
        return answer


class PendingCommit(PendingRequest[OffsetCommitResponse]):
    def expect(self, errors: int | Mapping[Partition, int] = 0) -> OffsetCommitResponse:
        """Expect one error for every named partition, or one error for each."""
        answer = self.answer()
        assert isinstance(self.request, OffsetCommitRequest)
        named = [(topic.name, row.partition_index) for topic in self.request.topics for row in topic.partitions]
        wanted = dict.fromkeys(named, errors) if isinstance(errors, int) else dict(errors)
        found = {
            (topic.name, row.partition_index): row.error_code for topic in answer.topics for row in topic.partitions
        }
        assert found == wanted, f"{self} was answered with\n  {found}, expected\n  {wanted}"
        return answer


class PendingFetch(PendingRequest[OffsetFetchResponse]):
    """A response with one group up to version 7, several from version 8."""

    def expect(
        self, offsets: Mapping[Partition, int | tuple[object, ...]], error: int = 0, *, group: str | None = None
    ) -> OffsetFetchResponse:
        """Expect these partitions: an offset, or (offset, leader epoch, metadata, error).

        An offset alone means epoch -1, metadata "" and error 0. Versions without a leader epoch have -1.
        """
        answer = self.answer()
        wanted = {key: value if isinstance(value, tuple) else (value, -1, "", 0) for key, value in offsets.items()}
        found, code = self._found(answer, group)
        assert (code, found) == (error, wanted), (
            f"{self} was answered with\n  {code} {found}, expected\n  {error} {wanted}"
        )
        return answer

    def _found(self, answer: OffsetFetchResponse, group: str | None) -> tuple[dict[Partition, tuple[object, ...]], int]:
        if self.version < 8:
            rows: Iterable[Any] = answer.topics
            code = answer.error_code
        else:
            row = answer.groups[0] if group is None else next(row for row in answer.groups if row.group_id == group)
            rows, code = row.topics, row.error_code
        return {
            (topic.name, each.partition_index): (
                each.committed_offset,
                each.committed_leader_epoch,
                each.metadata,
                each.error_code,
            )
            for topic in rows
            for each in topic.partitions
        }, code


class PendingDescribe(PendingRequest[DescribeGroupsResponse]):
    @property
    def row(self) -> DescribedGroup:
        """The row of the only requested group."""
        (row,) = self.answer().groups
        return row

    def expect(
        self, state: str, members: Iterable[str] | None = None, error: int = 0, **expected: object
    ) -> DescribedGroup:
        """Expect the only requested group in this state, with these member ids and other fields."""
        row = self.row
        self.compare(row, {"error_code": error, "group_state": state, **expected})
        if members is not None:
            ids = sorted(each.member_id for each in row.members)
            assert ids == sorted(members), f"{self} was answered with the members {ids}, expected {sorted(members)}"
        return row


class PendingDelete(PendingRequest[DeleteGroupsResponse]):
    def expect(self, errors: Mapping[str, int]) -> DeleteGroupsResponse:
        """Expect one row per group, in any order."""
        answer = self.answer()
        found = sorted((row.group_id, row.error_code) for row in answer.results)
        assert found == sorted(errors.items()), f"{self} was answered with {found}, expected {sorted(errors.items())}"
        return answer


class PendingOffsetDelete(PendingRequest[OffsetDeleteResponse]):
    def expect(self, errors: Mapping[Partition, int], error: int = 0) -> OffsetDeleteResponse:
        """Expect the error of each partition, and the top-level error."""
        answer = self.answer()
        found = {
            (topic.name, row.partition_index): row.error_code for topic in answer.topics for row in topic.partitions
        }
        assert (answer.error_code, found) == (error, dict(errors)), (
            f"{self} was answered with\n  {answer.error_code} {found}, expected\n  {error} {dict(errors)}"
        )
        return answer


def _shown(name: str, value: object) -> str:
    if name == "error_code" and isinstance(value, int):
        return f"{value} {Error(value).name}"
    return repr(value)
