"""Producer ids, and InitProducerId of producers that are only idempotent (KIP-98)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

from ..refusal import RefusedError
from .metadata_changes import ProducerIdsReserved

if TYPE_CHECKING:
    from .storage import Storage

BLOCK = 1_000
"""The number of ids reserved at once (`ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`); a restart loses the unused ones."""


class ProducerIds:
    """The allocator of producer ids, from 0 on, each with epoch 0."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._next = 0
        self.reserved = 0
        """The end of the reserved ids."""

    def resume(self, reserved: int) -> None:
        """Continue with the first unreserved id."""
        self._next = self.reserved = reserved

    def init(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """Return a new id for a producer that is only idempotent; 42 for an incomplete identity."""
        if (request.producer_id == -1) != (request.producer_epoch == -1):
            return _refused(Error.INVALID_REQUEST)
        new_id = self.next_id()
        if new_id is None:
            # Kafka's error without a block of ids: the client retries (`RPCProducerIdManager`)
            return _refused(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return InitProducerIdResponse(producer_id=new_id, producer_epoch=0)

    def next_id(self) -> int | None:
        """Return a new id, or None if no block of ids could be reserved."""
        if self._next >= self.reserved:
            try:
                self._storage.propose(ProducerIdsReserved(self._next + BLOCK))
            except RefusedError:
                return None
        self._next += 1
        return self._next - 1


def _refused(error: Error) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
