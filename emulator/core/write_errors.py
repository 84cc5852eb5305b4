"""The response errors of failed log writes, by Kafka's coordinator: OLD in Scala, NEW in Java."""

from __future__ import annotations

from koordinator.wire.errors import Error


def new_write_error(error: Error) -> Error:
    """Map a write error to NEW's response error (`CoordinatorOperationExceptionHelper`)."""
    match error:
        case Error.UNKNOWN_TOPIC_OR_PARTITION | Error.NOT_ENOUGH_REPLICAS | Error.REQUEST_TIMED_OUT:
            return Error.COORDINATOR_NOT_AVAILABLE
        case Error.NOT_LEADER_OR_FOLLOWER | Error.KAFKA_STORAGE_ERROR:
            return Error.NOT_COORDINATOR
        case Error.MESSAGE_TOO_LARGE | Error.RECORD_LIST_TOO_LARGE | Error.INVALID_FETCH_SIZE:
            return Error.UNKNOWN_SERVER_ERROR
        case _:
            return error


def old_group_write_error(error: Error) -> Error:
    """Map the write error of a group record to OLD's response error (`GroupMetadataManager.storeGroup`)."""
    match error:
        case Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            return Error.COORDINATOR_NOT_AVAILABLE
        case Error.REQUEST_TIMED_OUT:
            return Error.REBALANCE_IN_PROGRESS
        case _:
            return new_write_error(error)


def old_offset_write_error(error: Error) -> Error:
    """Map the write error of offset records to OLD's response error (`GroupMetadataManager.storeOffsets`)."""
    match error:
        case Error.MESSAGE_TOO_LARGE | Error.RECORD_LIST_TOO_LARGE | Error.INVALID_FETCH_SIZE:
            return Error.INVALID_COMMIT_OFFSET_SIZE
        case Error.REQUEST_TIMED_OUT:
            return error
        case _:
            return old_group_write_error(error)
