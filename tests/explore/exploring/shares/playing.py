"""Play one sequence to a broker at an address, on one connection; the last outcome has the records of its groups."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from exploring.fields import playing
from exploring.fields.requests import GROUP
from exploring.shares.requests import MEMBER_EPOCHS, MEMBERS, SESSION_EPOCHS, WAIT_MS, Next
from exploring.steps import fill
from koordinator.client.errors import InvalidResponse, TimedOut
from koordinator.wire.apis import APIS, REQUEST_KEYS
from koordinator.wire.errors import Error
from koordinator.wire.messages import incremental_alter_configs as configs
from koordinator.wire.messages import share_fetch
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from koordinator.wire.messages.share_fetch import ShareFetchRequest
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from koordinator.wire.records import read_batches

if TYPE_CHECKING:
    from exploring.transactions.steps import Sequence
    from koordinator.client.connection import Address

ASSIGNED_S = 60
LOADED_MS = 20_000
SETTLE_S = 0.15
"""The time in which a broker writes the release of records after its answer, unless its machine is busy."""

PATIENCE = 12
"""How many times longer a patient playing waits, and lets a fetch wait: the share partition may be loading."""

KEEPS_EPOCH = {
    *(Error.INVALID_REQUEST, Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH),
    *(Error.UNSUPPORTED_VERSION, Error.GROUP_AUTHORIZATION_FAILED, Error.SHARE_SESSION_LIMIT_REACHED),
}
"""The errors of requests that do not use the epoch of a share session up."""

GROUP_RESOURCE = 32


class Playing(playing.Playing):
    """A sequence at a broker."""

    def __init__(self, sequence: Sequence, address: Address, prefix: str) -> None:
        super().__init__(sequence, address, prefix)
        self._epochs: dict[Next, int] = dict.fromkeys(Next, 0)

    def prepare(self) -> None:
        """Configure the group, and let A join until its partitions are initialized."""
        super().prepare()
        config = configs.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
        resource = configs.AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=f"{self._prefix}.{GROUP}", configs=(config,)
        )
        self._ask(configs.IncrementalAlterConfigsRequest(resources=(resource,)), 1)
        limit = time.monotonic() + ASSIGNED_S
        while not self._assigned():
            assert time.monotonic() < limit, f"{self.topic} is not assigned"
            time.sleep(0.05)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the broker is ready, and has loaded the share partition: then a fetch ends at once."""
        super().wait_ready()
        for epoch in (0, -1) if self._epochs[Next.MEMBER_A] else ():
            place = share_fetch.FetchPartition(partition_index=0)
            request = ShareFetchRequest(
                group_id=f"{self._prefix}.{GROUP}",
                member_id="W",
                share_session_epoch=epoch,
                max_wait_ms=LOADED_MS,
                max_bytes=1 << 20,
                max_records=1,
                batch_size=1,
                topics=(share_fetch.FetchTopic(topic_id=self._topic_id, partitions=(place,)),) if epoch == 0 else (),
            )
            self._ask(request, 1)
        self._settle()

    def _settle(self) -> None:
        time.sleep(SETTLE_S * (PATIENCE if self.is_patient else 1))

    def _assigned(self) -> bool:
        epoch = self._epochs[Next.MEMBER_A]
        request = ShareGroupHeartbeatRequest(
            group_id=f"{self._prefix}.{GROUP}",
            member_id="A",
            member_epoch=epoch,
            subscribed_topic_names=None if epoch else (self.topic,),
        )
        answer = self._ask(request, 1)
        self._epochs[Next.MEMBER_A] = answer.member_epoch
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    def _send(self, request: Any, version: int) -> object:
        asked = fill(request, self._hole)
        if self.is_patient and isinstance(asked, ShareFetchRequest) and asked.max_wait_ms == WAIT_MS:
            asked = replace(asked, max_wait_ms=WAIT_MS * PATIENCE)
        link = self._connected()
        try:
            answer = link.send(asked, version, APIS[REQUEST_KEYS[type(asked)]].response)
        except TimedOut:
            self.close()
            return "no answer"
        except InvalidResponse:
            self.close()
            return "an unreadable answer"
        self._learn_epochs(asked, answer)
        return type(answer).__name__, self._shown(answer)

    def _hole(self, value: object) -> object:
        return self._epochs[value] if isinstance(value, Next) else super()._hole(value)

    def _learn_epochs(self, asked: Any, answer: Any) -> None:
        if isinstance(answer, ShareGroupHeartbeatResponse):
            if not answer.error_code and asked.member_id in MEMBERS:
                self._epochs[MEMBER_EPOCHS[asked.member_id]] = max(0, answer.member_epoch)
        elif isinstance(asked, ShareFetchRequest | ShareAcknowledgeRequest) and asked.member_id in MEMBERS:
            if asked.share_session_epoch == -1:
                self._settle()
            if answer.error_code not in KEEPS_EPOCH and asked.group_id == f"{self._prefix}.{GROUP}":
                epoch = asked.share_session_epoch
                self._epochs[SESSION_EPOCHS[asked.member_id]] = 0 if epoch == -1 else epoch + 1

    def close(self) -> None:
        """Close the connection, and with it the sessions that it has opened."""
        super().close()
        for key in SESSION_EPOCHS.values():
            self._epochs[key] = 0

    def _field(self, of: type, name: str, value: Any) -> Any:
        if name == "records":
            return [(header.base_offset, header.last_offset) for header, _ in read_batches(value or b"")]
        if name == "partitions" and value and all(isinstance(each, int) for each in value):
            # which of them a member gets depends on the random id of the topic
            return len(value)
        return super()._field(of, name, value)
