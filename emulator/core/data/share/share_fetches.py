"""ShareFetch and ShareAcknowledge, at the leaders of partitions (KIP-932).

Nothing here knows the members of a group: any member id may fetch. `led_partitions` has the share partitions.

A fetch waits for records until `max_wait_ms` have passed (`DelayedShareFetch`). It is looked at again when the log
grows, a lock expires, the start offset moves, the share partition is loaded, or another fetch of the partition or an
acknowledgement comes. As in Kafka a release by acknowledgement is no such time: the look comes before its write.

The fetch of a closed connection goes on: the records that it acquires stay locked until the lock expires.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from koordinator.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

from ...acls.acl import Operation, ResourceType
from ...dialect import dialect_of
from ...effects import Reply
from ...refusal import Refusal, RefusedError
from ...timers import ShareFetchTimeout
from .acknowledgements import acknowledgements
from .exchanges import ShareExchange, WaitingFetch, acknowledge_response, empty_row, fetch_response
from .led_partitions import LedPartitions
from .partition import NOT_IN_FLIGHT, UnknownStartError
from .reading import BATCH_OPTIMIZED, RECORD_LIMIT, RecordReader
from .sessions import CLOSES, OPENS, ShareSession, ShareSessions, is_member_id, next_epoch
from .settings import ShareSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest

    from ...cluster import ClusterState
    from ...effects import Call, Effect
    from ...timers import DataTimerKey, ShareTimerKey, Timers
    from .partition import Acknowledgement, StateWrite
    from .reading import Acquirable
    from .sessions import PartitionKey
    from .state_requests import LedPartition

NOT_LOADED = Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
"""The refusal of acknowledgements for a share partition without a fetch since it was dropped."""


class ShareFetches:
    """The share sessions, share partitions and waiting share fetches of a node. Its timers are in `timers`."""

    def __init__(self, node_id: int, cluster: ClusterState, timers: Timers[DataTimerKey]) -> None:
        self.sessions = ShareSessions()
        self.waiting: dict[ShareFetchTimeout, WaitingFetch] = {}
        self._timers = timers
        self._cluster = cluster
        self._reader = RecordReader(cluster)
        # by token, the request and partition whose acknowledgement is written
        self._writing: dict[int, tuple[ShareExchange, int, PartitionKey]] = {}
        # waiting fetches by partition, in order of arrival
        self._watchers: defaultdict[PartitionKey, dict[ShareFetchTimeout, WaitingFetch]] = defaultdict(dict)
        self._looks: list[tuple[PartitionKey, str | None]] = []
        self._effects: list[Effect] = []
        self.partitions = LedPartitions(node_id, cluster, timers, self._effects, self._look_again)

    # -- inputs --------------------------------------------------------------------------------------------------

    def fetch(self, now: int, call: Call, request: ShareFetchRequest) -> list[Effect]:
        """Serve a ShareFetch: acknowledgements, and then records, for which it may wait."""
        if not self._cluster.features.serves_share_groups:
            return [Reply(call, ShareFetchResponse(error_code=Error.UNSUPPORTED_VERSION))]
        if request.group_id is None or not is_member_id(request.member_id):
            return [Reply(call, ShareFetchResponse(error_code=self._error_of_ids(request)))]
        if request.is_renew_ack and any(
            (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
        ):
            return [Reply(call, ShareFetchResponse(error_code=Error.INVALID_REQUEST))]
        exchange = ShareExchange(call, request, (request.group_id, request.member_id or ""))
        session = self._session(exchange, request)
        if session is Error.SHARE_SESSION_LIMIT_REACHED and request.max_wait_ms > 0:
            self._wait(now, WaitingFetch(exchange, request))
        elif isinstance(session, Error):
            return [Reply(call, ShareFetchResponse(error_code=session))]
        else:
            exchange.session, exchange.epoch = session, next_epoch(request.share_session_epoch)
            if _acknowledges(request) and not self._acknowledge_all(now, exchange, request):
                self._effects.append(Reply(call, _failed(Error.UNKNOWN_SERVER_ERROR)))
                return self._drain()
            if request.share_session_epoch == CLOSES or request.is_renew_ack:
                exchange.rows = {}
                self._answer(now, exchange)
            else:
                self._fetch(now, WaitingFetch(exchange, request), list(session.partitions))
        return self._drain()

    def acknowledge(self, now: int, call: Call, request: ShareAcknowledgeRequest) -> list[Effect]:
        """Serve a ShareAcknowledge; it is answered when its changes are written."""
        if not self._cluster.features.serves_share_groups:
            return [Reply(call, ShareAcknowledgeResponse(error_code=Error.UNSUPPORTED_VERSION))]
        if request.group_id is None or not is_member_id(request.member_id):
            return [Reply(call, ShareAcknowledgeResponse(error_code=self._error_of_ids(request)))]
        key = (request.group_id, request.member_id or "")
        epoch = request.share_session_epoch
        session = Error.INVALID_SHARE_SESSION_EPOCH if epoch == OPENS else self.sessions.resume(key, epoch)
        if isinstance(session, Error):
            return [Reply(call, ShareAcknowledgeResponse(error_code=session))]
        exchange = ShareExchange(call, request, key, session)
        if self._acknowledge_all(now, exchange, request):
            self._answer(now, exchange)
        else:
            self._effects.append(Reply(call, ShareAcknowledgeResponse(error_code=Error.UNKNOWN_SERVER_ERROR)))
        return self._drain()

    def owns(self, token: int) -> bool:
        """Return whether this is the token of a request to a share coordinator, or of one to write dead letters."""
        return token in self.partitions.requests.sent or token in self.partitions.dead_letters.sent

    def answered(self, now: int, token: int, response: Any) -> list[Effect]:  # noqa: ANN401 - of the request's API
        """Take the response to a request of this node; None if its broker could not be reached."""
        partitions = self.partitions
        if token in partitions.dead_letters.sent:
            partitions.bury(now, partitions.dead_letters.answered(now, token, response))
            return self._drain()
        answered = partitions.requests.answered(now, token, response)
        if answered is not None:
            request, result = answered
            if request.write is None:
                partitions.loaded(now, request.target, result, token)
            else:
                refusal = result if isinstance(result, Refusal) else None
                self._written(now, request.target, request.write, refusal, self._writing.pop(token, None))
        return self._drain()

    def expired(self, now: int, key: ShareTimerKey) -> list[Effect]:
        """Fire a timer: the end of a wait, or one of a share partition."""
        if not isinstance(key, ShareFetchTimeout):
            self.partitions.expired(now, key)
            return self._drain()
        waiting = self._remove(key)
        if waiting.partitions:
            self._finish(now, waiting, self._acquirable(waiting))
        else:
            self._effects.append(Reply(waiting.exchange.call, _failed(Error.SHARE_SESSION_LIMIT_REACHED)))
        return self._drain()

    def grown(self, now: int, partitions: Iterable[tuple[str, int]]) -> list[Effect]:
        """Answer the waiting fetches for which there are records now, after an append to these partitions."""
        for name, partition in partitions if self._watchers else ():
            topic = self._cluster.topics.find(name)
            assert topic is not None, f"there is no topic {name} to append to"
            self._look_again(now, (topic.topic_id, partition))
        return self._drain()

    def forget(self) -> list[Effect]:
        """Forget all sessions and share partitions, as a restarted broker does; clients open new sessions."""
        for key in list(self.waiting):
            call = self._remove(key).exchange.call
            self._effects.append(Reply(call, _failed(Error.SHARE_SESSION_NOT_FOUND)))
        self.partitions.forget()
        self.sessions = ShareSessions()
        return self._drain()

    def disconnected(self, now: int, connection: int) -> list[Effect]:
        """Close the session that a connection has opened, and release the member's records."""
        session, emptied = self.sessions.disconnected(connection)
        if session is not None:
            self._release(now, session)
        if emptied is not None:
            self.partitions.forget(emptied)
        return self._drain()

    def end_locks(
        self, now: int, led: LedPartition, first: int, last: int, member_id: str | None
    ) -> tuple[int, list[Effect]]:
        """End locks of records between two offsets for a test; return the number of records, and the effects."""
        return self.partitions.end_locks(now, led, first, last, member_id), self._drain()

    def _drain(self) -> list[Effect]:
        out = self._effects.copy()
        self._effects.clear()
        return out

    def _error_of_ids(self, request: ShareFetchRequest | ShareAcknowledgeRequest) -> Error:
        """Return the error of a request whose group or member is missing, or whose member id is no such id."""
        is_missing = request.member_id is None or is_member_id(request.member_id)
        if is_missing and not dialect_of(self._cluster.settings).missing_share_ids_are_invalid:
            return Error.UNKNOWN_SERVER_ERROR
        return Error.INVALID_REQUEST

    # -- sessions ------------------------------------------------------------------------------------------------

    def _session(self, exchange: ShareExchange, request: ShareFetchRequest) -> ShareSession | Error:
        """Return the session of a fetch, with the partitions that it adds and without those that it forgets."""
        added = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
        if request.share_session_epoch == OPENS:
            if _acknowledges(request):
                return Error.INVALID_REQUEST
            sessions_max = self._cluster.settings.group_share_max_share_sessions
            return self.sessions.open(exchange.key, exchange.call.connection, added, sessions_max)
        session = self.sessions.resume(exchange.key, request.share_session_epoch)
        if isinstance(session, ShareSession) and request.share_session_epoch != CLOSES:
            forgotten = ((topic.topic_id, at) for topic in request.forgotten_topics_data for at in topic.partitions)
            self.sessions.change(session, added, forgotten)
        return session

    def _release(self, now: int, session: ShareSession) -> None:
        """Release the records of a closed session, in the partitions that it had at the end."""
        for key in session.partitions:
            self.partitions.release(now, *session.key, key)

    # -- acknowledgements ----------------------------------------------------------------------------------------

    def _acknowledge_all(
        self, now: int, exchange: ShareExchange, request: ShareFetchRequest | ShareAcknowledgeRequest
    ) -> bool:
        """Carry out the acknowledgements of a request; those that are not refused may wait for a write.

        Returns whether Kafka does not fail on the way. If it does, what was carried out before is written all the same,
        and a session that the request closes stays open.
        """
        carried_out: dict[PartitionKey, list[Acknowledgement]] = {}
        empty: list[PartitionKey] = []
        for topic_row in request.topics:
            topic = self._cluster.topics.find_id(topic_row.topic_id)
            is_denied = topic is not None and not self._may_read(exchange.call, topic.name)
            for row in topic_row.partitions:
                key = (topic_row.topic_id, row.partition_index)
                batches = acknowledgements(
                    row.acknowledgement_batches, exchange.call.api_version, renews=request.is_renew_ack
                )
                if topic is None:
                    exchange.results[key] = Refusal(Error.UNKNOWN_TOPIC_ID, "")
                elif batches is None:
                    exchange.results[key] = Refusal(Error.INVALID_REQUEST, "")
                elif is_denied:
                    exchange.results[key] = Refusal(Error.TOPIC_AUTHORIZATION_FAILED, "")
                elif topic.log(row.partition_index) is None:
                    exchange.results[key] = Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, "")
                elif batches:
                    carried_out[key] = batches
                else:
                    empty.append(key)
        if carried_out:
            exchange.results |= dict.fromkeys(empty)
        for key, batches in carried_out.items():
            try:
                self._acknowledge(now, exchange, key, batches)
            except UnknownStartError:
                for token in exchange.writing:
                    del self._writing[token]
                return False
        return True

    def _acknowledge(
        self, now: int, exchange: ShareExchange, key: PartitionKey, batches: list[Acknowledgement]
    ) -> None:
        group_id, member_id = exchange.key
        led = self.partitions.led.get((group_id, *key))
        if led is None or led.state is None:
            exchange.results[key] = NOT_LOADED if led is None else NOT_IN_FLIGHT
            return
        try:
            write = led.state.acknowledge(
                self.partitions.group_now(group_id, now),
                member_id,
                batches,
                ShareSettings(self._cluster, group_id).limits,
            )
        except RefusedError as refused:
            exchange.results[key] = refused.refusal
        else:
            exchange.results[key] = None
            if write is not None:
                token = self.partitions.write(led, led.state, write)
                exchange.writing.add(token)
                self._writing[token] = exchange, token, key
        self.partitions.set_timer(now, led, led.state)
        self._look_again(now, key, group_id)

    def _written(
        self,
        now: int,
        led: LedPartition,
        write: StateWrite,
        refusal: Refusal | None,
        waiting: tuple[ShareExchange, int, PartitionKey] | None,
    ) -> None:
        """Complete a change, or take it back; answer the acknowledgement that waited for it."""
        moved = self.partitions.complete(led, write, refusal)
        if waiting is not None:
            exchange, token, key = waiting
            exchange.writing.remove(token)
            exchange.results[key] = refusal
            if refusal is None:
                self.partitions.note_archived(now, led, write, exchange.key[1])
            self._answer(now, exchange)
        self.partitions.completed(now, led, write, refusal, moved=moved)

    # -- fetches -------------------------------------------------------------------------------------------------

    def _fetch(self, now: int, waiting: WaitingFetch, keys: list[PartitionKey]) -> None:
        """Fetch from the partitions of a session, or wait."""
        exchange, request = waiting.exchange, waiting.request
        readable = [key for key in keys if self._is_readable(waiting, key)]
        if readable and request.share_acquire_mode not in {BATCH_OPTIMIZED, RECORD_LIMIT}:
            self._effects.append(Reply(exchange.call, _failed(Error.UNKNOWN_SERVER_ERROR)))
            return
        waiting.bytes_max = min(request.max_bytes, self._cluster.settings.fetch_max_bytes)
        if request.max_records and waiting.bytes_max:
            first = max(0, request.share_session_epoch) % len(readable) if readable else 0
            for key in readable[first:] + readable[:first]:
                led = self.partitions.load(waiting, key)
                if isinstance(led, Error):
                    waiting.failed[key] = empty_row(key[1], led)
                else:
                    waiting.partitions[key] = led
        if not waiting.partitions:
            self._finish(now, waiting, {})
        elif not self._try(now, waiting):
            if request.max_wait_ms <= 0:
                self._finish(now, waiting, self._acquirable(waiting))
            else:
                self._wait(now, waiting)

    def _is_readable(self, waiting: WaitingFetch, key: PartitionKey) -> bool:
        """Return whether a partition exists and may be read; if not, it gets a row."""
        topic = self._cluster.topics.find_id(key[0])
        if topic is None:
            error = Error.UNKNOWN_TOPIC_ID
        elif not self._may_read(waiting.exchange.call, topic.name):
            error = Error.TOPIC_AUTHORIZATION_FAILED
        elif topic.log(key[1]) is None:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
        else:
            return True
        waiting.failed[key] = empty_row(key[1], error)
        return False

    def _may_read(self, call: Call, name: str) -> bool:
        authorizer = self._cluster.authorizer
        return authorizer is None or authorizer.allows(call, Operation.READ, ResourceType.TOPIC, name)

    def _wait(self, now: int, waiting: WaitingFetch) -> None:
        key = waiting.timeout
        self.waiting[key] = waiting
        for partition in waiting.partitions:
            self._watchers[partition][key] = waiting
        self._timers.set(key, now + waiting.request.max_wait_ms)

    def _remove(self, key: ShareFetchTimeout) -> WaitingFetch:
        waiting = self.waiting.pop(key)
        self._timers.cancel(key)
        for partition in waiting.partitions:
            watchers = self._watchers[partition]
            del watchers[key]
            if not watchers:
                del self._watchers[partition]
        return waiting

    def _look_again(self, now: int, key: PartitionKey, group_id: str | None = None) -> None:
        """Look at the fetches that wait for a partition, of one group or of all.

        A fetch that is finished makes others worth a look: these are done one after the other, not in each other.
        """
        self._looks.append((key, group_id))
        if len(self._looks) > 1:
            return
        try:
            for watched, group in self._looks:
                for waiting in list(self._watchers.get(watched, {}).values()):
                    if group in {None, waiting.exchange.group_id}:
                        self._try(now, waiting)
        finally:
            self._looks.clear()

    def _try(self, now: int, waiting: WaitingFetch) -> bool:
        """Finish a fetch if there is enough to read; return whether there is (`tryComplete`)."""
        acquirable = self._acquirable(waiting)
        if not acquirable:
            return False
        found = self._reader.find(waiting, acquirable)
        if not self._reader.is_satisfied(waiting, acquirable):
            return False
        # Kafka reads here what it has to find, and the others later, but takes records from those first
        acquirable = {key: each for key, each in acquirable.items() if key not in found} | found
        if waiting.timeout in self.waiting:
            self._remove(waiting.timeout)
        self._finish(now, waiting, acquirable)
        return True

    def _acquirable(self, waiting: WaitingFetch) -> Acquirable:
        """Return the share partitions from which records can be acquired."""
        limits = ShareSettings(self._cluster, waiting.exchange.group_id).limits
        return {
            key: led.state
            for key, led in waiting.partitions.items()
            if led.state is not None and not led.is_dropped and led.state.can_acquire(limits)
        }

    def _finish(self, now: int, waiting: WaitingFetch, acquirable: Acquirable) -> None:
        """Acquire records and answer. Others that wait for the partitions are looked at again."""
        waiting.exchange.rows = (
            self._reader.acquire(self.partitions.group_now(waiting.exchange.group_id, now), waiting, acquirable)
            | waiting.failed
        )
        for key, state in acquirable.items():
            self.partitions.set_timer(now, waiting.partitions[key], state)
        self._answer(now, waiting.exchange)
        for key in acquirable:
            self._look_again(now, key)

    # -- answers -------------------------------------------------------------------------------------------------

    def _answer(self, now: int, exchange: ShareExchange) -> None:
        """Answer a request if all is done; a request that closes its session does so with its answer."""
        if not exchange.is_done:
            return
        if isinstance(exchange.request, ShareFetchRequest):
            self._effects.append(Reply(exchange.call, fetch_response(self._cluster, exchange)))
        else:
            self._effects.append(Reply(exchange.call, acknowledge_response(self._cluster, exchange)))
        if exchange.request.share_session_epoch == CLOSES:
            session = self.sessions.close(exchange.key)
            if session is not None:
                self._release(now, session)


def _acknowledges(request: ShareFetchRequest) -> bool:
    """Return whether a fetch has acknowledgements."""
    return any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)


def _failed(error: Error) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=error)
