"""Security protocols of listeners, and the mechanisms that a listener enables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.suggest import UnknownWord, did_you_mean
from ...config.value_rules import InvalidSetting
from ...core.brokers import PLAINTEXT
from ...core.java.hash_order import java_order
from .mechanisms import NAMES

if TYPE_CHECKING:
    from ...config.settings import Settings

SSL, SASL_PLAINTEXT, SASL_SSL = "SSL", "SASL_PLAINTEXT", "SASL_SSL"

PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

WITH_TLS = {SSL, SASL_SSL}
WITH_SASL = {SASL_PLAINTEXT, SASL_SSL}


def with_article(protocol: str) -> str:
    """Return "a PLAINTEXT", or "an SSL", as the protocol is spoken."""
    return f"{'an' if protocol in (SSL, 'HTTPS') else 'a'} {protocol}"


def checked_protocol(name: str) -> str:
    """Return a security protocol in upper case. Raises ValueError for another word."""
    if name.upper() not in PROTOCOLS:
        known = ", ".join(protocol.lower() for protocol in PROTOCOLS)
        near = did_you_mean(name.lower(), [protocol.lower() for protocol in PROTOCOLS])
        raise UnknownWord(f"security {name!r}: must be one of {known}{near}")
    return name.upper()


def protocol_of(listener: str, settings: Settings) -> str:
    """Return the security protocol of a listener: that of the map, else that of its name, else PLAINTEXT.

    Raises InvalidSetting for an invalid `listener.security.protocol.map`.
    """
    mapped = protocols(settings.listener_security_protocol_map)
    return mapped.get(listener, listener if listener in PROTOCOLS else PLAINTEXT)


def protocols(text: str) -> dict[str, str]:
    """Return the protocol of each listener in `listener.security.protocol.map`. Raises InvalidSetting."""
    mapped = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        listener, _, protocol = (each.strip().upper() for each in pair.partition(":"))
        if protocol not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            near = did_you_mean(protocol, PROTOCOLS)
            raise InvalidSetting(
                f"listener.security.protocol.map={text}: {pair!r} must be LISTENER:PROTOCOL, of {known}{near}"
            )
        mapped[listener] = protocol
    return mapped


def enabled_mechanisms(settings: Settings) -> list[str]:
    """Return the enabled mechanisms that are emulated, in the order of Kafka's responses: that of a Java hash set.

    Raises InvalidSetting for an unknown mechanism.
    """
    given = [each.strip() for each in settings.sasl_enabled_mechanisms.split(",") if each.strip()]
    for name in given:
        if name not in (*NAMES, "GSSAPI"):
            known = ", ".join(NAMES)
            near = did_you_mean(name, NAMES)
            raise InvalidSetting(f"sasl.enabled.mechanisms: {name!r} is not emulated; there are {known}{near}")
    return [name for name in java_order(dict.fromkeys(given)) if name in NAMES]
