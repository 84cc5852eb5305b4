"""SaslHandshake (api key 17), versions 0-1."""

from ..schema import array, int16, message, string


@message(key=17, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    """A request for a mechanism; v1 is followed by SaslAuthenticate."""

    mechanism: str = string()


@message(key=17, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    """An error, with the mechanisms of the listener."""

    error_code: int = int16()
    mechanisms: tuple[str, ...] = array(string)
