"""Kafka's refusals for features that are not configured here, as in a broker without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from koordinator.wire.messages.sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call

RESPONDERS: Mapping[int, Callable[[ClusterState, int, Call, Any], Message]] = {
    # the listener has no SASL, so the connection is past authentication
    ApiKey.SASL_HANDSHAKE: lambda _, __, ___, ____: SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE),
    ApiKey.SASL_AUTHENTICATE: lambda _, __, ___, ____: SaslAuthenticateResponse(
        error_code=Error.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    ),
}
"""The responders of these APIs; called with cluster, node id, call and request."""
