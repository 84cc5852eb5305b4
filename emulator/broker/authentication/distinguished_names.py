"""The principals of client certificates: their subjects as text, and the rules that map these to names (KIP-371)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...core.expressions import InvalidExpressionError, compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SHORT_NAMES = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
"""The attributes that RFC 2253 abbreviates, by the names of Python's `ssl`."""

SPECIAL = re.compile(r'([,+"\\<>;=])')

RULE = re.compile(r"DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")

CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


class NoPrincipal(ValueError):
    """No rule of `ssl.principal.mapping.rules` fits the name of a certificate."""


def name_of(certificate: dict[str, Any]) -> str:
    """Return the subject of a certificate of `getpeercert` as RFC 2253 writes it: its last attribute first."""
    subject: Iterable[Iterable[tuple[str, str]]] = certificate.get("subject", ())
    return ",".join(
        "+".join(f"{SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in attributes)
        for attributes in reversed(tuple(subject))
    )


def _escaped(value: str) -> str:
    text = SPECIAL.sub(r"\\\1", value)
    if text[:1] in ("#", " "):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if len(text) > 1 and text.endswith(" ") and not text.endswith("\\ ") else text


def mapped(name: str, rules: str) -> str:
    """Return the name of the principal: by the first rule that fits the whole name. Raises NoPrincipal.

    A rule is DEFAULT, the name itself, or `RULE:pattern/replacement/`, with L or U behind for lower or upper case.
    """
    for rule in RULE.finditer(rules or "DEFAULT"):
        if rule[0] == "DEFAULT":
            return name
        pattern, replacement = (each.replace("\\/", "/") for each in (rule[1], rule[2]))
        try:
            found = compiled(pattern).fullmatch(name)
        except InvalidExpressionError as error:
            raise NoPrincipal(f"ssl.principal.mapping.rules: `{pattern}` {error}") from None
        if found is not None:
            for number, group in enumerate((found[0], *found.groups())):
                replacement = replacement.replace(f"${number}", group or "")
            return CASES[rule[3]](replacement)
    raise NoPrincipal(f"no rule of ssl.principal.mapping.rules fits {name!r}: {rules}")
