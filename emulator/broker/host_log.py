"""Log lines that a node writes once for each client host, because clients repeat what causes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTS_MAX = 1_000
"""Number of hosts and reasons that are remembered."""


class HostLog:
    """Writes a line to `log` for the first time that a host does something."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._known: dict[tuple[str, str], None] = {}

    def tell(self, client_host: str, reason: str, line: str) -> None:
        """Write a line, unless the host is known to do this."""
        if (client_host, reason) in self._known:
            return
        if len(self._known) == HOSTS_MAX:
            del self._known[next(iter(self._known))]
        self._known[client_host, reason] = None
        self._log(line)
