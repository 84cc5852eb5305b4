"""A client of the soak: a thread that connects again to each new server."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.client.errors import ClientError
from koordinator.wire.apis import APIS, REQUEST_KEYS

if TYPE_CHECKING:
    from brokers.soak import Figures, Lives

ANSWER_S = 60
"""Time limit of a response."""

PAUSE_S = 0.005
"""Time between two attempts."""


class SoakClient(threading.Thread, ABC):
    """One connection at a time, until the end. `died` has the error of a client that gave up."""

    def __init__(self, name: str, figures: Figures, lives: Lives) -> None:
        super().__init__(name=name, daemon=True)
        self.figures, self.lives = figures, lives
        self.died: BaseException | None = None

    def run(self) -> None:
        """Stay connected to the current server, until the end."""
        try:
            while not self.lives.over.is_set():
                try:
                    link = BrokerConnection(self.lives.address, Deadline(ANSWER_S), "0")
                except ClientError:
                    self.lives.over.wait(PAUSE_S)
                    continue
                try:
                    self._live(link)
                except ClientError:
                    continue
                finally:
                    link.close()
        except BaseException as error:  # noqa: BLE001 - it is told to the main thread
            self.died = error

    @abstractmethod
    def _live(self, link: BrokerConnection) -> None:
        """Work on one connection. ClientError ends it, and the next one begins."""

    def _ask(self, link: BrokerConnection, request: Any, version: int) -> Any:
        link.deadline = Deadline(ANSWER_S)
        return link.send(request, version, APIS[REQUEST_KEYS[type(request)]].response)
