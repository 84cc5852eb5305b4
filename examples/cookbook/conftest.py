"""The programs of the cookbook run on threads that end with their test."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import warnings
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

with warnings.catch_warnings():
    # kafka-python loads its message schemas in a deprecated way; import it here, where the warning is ignored
    warnings.simplefilter("ignore")
    import kafka  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

END_S = 20.0
"""Time limit for a program to end."""

WARNINGS_OF_CLIENTS = (
    # kafka-python loads more of its message schemas later
    "ignore:(open|read)_text is deprecated:DeprecationWarning",
    # kafka-python sometimes forgets a connection that was opening during close
    "ignore:unclosed <socket.socket:ResourceWarning",
)


class Running:
    """A program on its own thread: a function whose last argument is a stop event, or a coroutine function."""

    def __init__(self, program: Callable[..., object], args: tuple[object, ...]) -> None:
        self._asked = False
        self._stopped = threading.Event()
        self._cancel: Callable[[], object] = lambda: None
        self._end: Future[object] = Future()
        threading.Thread(target=self._run, args=(program, args), daemon=True).start()

    @property
    def is_settled(self) -> bool:
        """Whether it has ended and the test has seen its result."""
        return self._asked and self._end.done()

    def tell(self) -> None:
        """Ask it to stop: set its event, or cancel its task as Ctrl-C does."""
        self._stopped.set()
        self._cancel()

    def stop(self) -> None:
        """Ask it to stop, wait for its end, and raise its error."""
        self.tell()
        self.result()

    def result(self) -> None:
        """Wait until it ends by itself, and raise its error."""
        self._asked = True
        self._end.result(END_S)

    def _run(self, program: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            if inspect.iscoroutinefunction(program):
                asyncio.run(self._until_cancelled(program(*args)))
                # unclosed resources belong to this test
                gc.collect()
            else:
                program(*args, self._stopped)
        except BaseException as error:  # noqa: BLE001 - it belongs to the test
            self._end.set_exception(error)
        else:
            self._end.set_result(None)

    async def _until_cancelled(self, program: Coroutine[object, object, object]) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        self._cancel = lambda: loop.is_closed() or loop.call_soon_threadsafe(task.cancel)
        if self._stopped.is_set():
            self._cancel()
        with suppress(asyncio.CancelledError):
            await program


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore known client warnings in this folder, and mark the recipes as emulator-only."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.koordinator_emulator_only)
            for warning in WARNINGS_OF_CLIENTS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="module", autouse=True)
def no_litter() -> Iterator[None]:
    """Collect garbage of the clients while their warnings are ignored, and not in another test."""
    yield
    gc.collect()


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Callable[..., Running]]:
    """Return `start(program, *args)`, which runs a program (`Running`).

    Running programs are stopped at the end. The test fails if one does not stop, or ended with an error that the test
    has not read.
    """
    request.getfixturevalue("koordinator")  # torn down after the programs that talk to it
    programs: list[Running] = []

    def start(program: Callable[..., object], *args: object) -> Running:
        programs.append(Running(program, args))
        return programs[-1]

    yield start
    left = [program for program in programs if not program.is_settled]
    for program in left:
        program.tell()
    for program in left:
        program.result()
