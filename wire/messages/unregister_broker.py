"""UnregisterBroker (api key 64), version 0, flexible (KIP-500)."""

from ..schema import int16, int32, message, string


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerRequest:
    """A request to forget a broker."""

    broker_id: int = int32()


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    """The result."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
