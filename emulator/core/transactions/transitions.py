"""The states of a transactional id: every cause that changes its state, and the state it leads to.

`TransactionStore` looks up each change here; a change that is not in the table raises TransitionError. The names and
numbers are those of Kafka's `TransactionState`.
"""

from __future__ import annotations

from enum import Enum

from ..refusal import TransitionError


class TransactionStatus(Enum):
    """The state of a transactional id, as clients see it."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"

    @property
    def number(self) -> int:
        """The number of the state in the records of `__transaction_state`."""
        return _NUMBERS[self]

    @property
    def is_prepared(self) -> bool:
        """Whether the transaction is decided, and its markers are being written."""
        return self in {TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT}


_NUMBERS = {status: number for number, status in enumerate(TransactionStatus)}


class TransactionCause(Enum):
    """Why a transactional id changes its state; the value is the `cause` of the trace."""

    INITIALIZED = "initialized"
    PARTITIONS_ADDED = "partitions_added"
    COMMITTED = "committed"
    ABORTED = "aborted"
    ABORTED_EMPTY = "aborted_empty"
    TIMED_OUT = "timed_out"
    FENCED = "fenced"
    OPERATOR = "operator"
    MARKERS_WRITTEN = "markers_written"
    EXPIRED = "expired"


FENCING = (TransactionCause.TIMED_OUT, TransactionCause.FENCED, TransactionCause.OPERATOR)
"""The causes that abort a transaction with a raised epoch, so that its producer is fenced."""


_EMPTY, _ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMMITTED, _ABORTED, _DEAD = TransactionStatus
_QUIET = (_EMPTY, _COMMITTED, _ABORTED)

TRANSITIONS: dict[tuple[TransactionStatus, TransactionCause], TransactionStatus] = {
    **{(quiet, TransactionCause.INITIALIZED): _EMPTY for quiet in _QUIET},
    **{(quiet, TransactionCause.PARTITIONS_ADDED): _ONGOING for quiet in (*_QUIET, _ONGOING)},
    # KIP-890: with EndTxn v5 a client may abort what it does not know to be empty
    **{(quiet, TransactionCause.ABORTED_EMPTY): _PREPARE_ABORT for quiet in _QUIET},
    **{(quiet, TransactionCause.EXPIRED): _DEAD for quiet in _QUIET},
    (_ONGOING, TransactionCause.COMMITTED): _PREPARE_COMMIT,
    (_ONGOING, TransactionCause.ABORTED): _PREPARE_ABORT,
    (_ONGOING, TransactionCause.TIMED_OUT): _PREPARE_ABORT,
    (_ONGOING, TransactionCause.FENCED): _PREPARE_ABORT,
    (_ONGOING, TransactionCause.OPERATOR): _PREPARE_ABORT,
    (_PREPARE_COMMIT, TransactionCause.MARKERS_WRITTEN): _COMMITTED,
    (_PREPARE_ABORT, TransactionCause.MARKERS_WRITTEN): _ABORTED,
}
"""The next state by state and cause."""


def next_status(status: TransactionStatus, cause: TransactionCause) -> TransactionStatus:
    """Return the state that a cause leads to. Raises TransitionError if the table has no such row."""
    try:
        return TRANSITIONS[status, cause]
    except KeyError:
        raise TransitionError(f"no transition from {status.value} for {cause.value}") from None
