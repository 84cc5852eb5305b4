"""InitProducerId: ids for idempotent producers (KIP-98).

Transactions are not emulated. A transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
which every client treats as fatal, with an exception that names the transactional id;
COORDINATOR_NOT_AVAILABLE and the like would make it try for ever.
"""

from __future__ import annotations

from koordinator.wire.errors import Error
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


class ProducerIds:
    """Hands out producer ids, from 0 on, each with epoch 0."""

    def __init__(self) -> None:
        self._next = 0

    def init(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """A new id; 42 for half an identity or an empty transactional id, 53 for a transactional id."""
        if (request.producer_id == -1) != (request.producer_epoch == -1) or request.transactional_id == "":
            return _refused(Error.INVALID_REQUEST)
        if request.transactional_id is not None:
            return _refused(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        self._next += 1
        return InitProducerIdResponse(producer_id=self._next - 1, producer_epoch=0)


def _refused(error: Error) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
