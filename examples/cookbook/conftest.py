"""What the programs of the cookbook run on: threads that end with their test."""

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
    # it loads its message schemas in a way that Python will not have for ever; now, so that no test is told
    warnings.simplefilter("ignore")
    import kafka  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

END_S = 20.0
"""How long a program may take to end."""

WARNINGS_OF_CLIENTS = (
    # kafka-python loads more of its message schemas later
    "ignore:(open|read)_text is deprecated:DeprecationWarning",
    # now and then it forgets a connection that was being made when it was closed
    "ignore:unclosed <socket.socket:ResourceWarning",
)


class Running:
    """A program on a thread of its own: a function, whose last argument says when to stop, or a coroutine function."""

    def __init__(self, program: Callable[..., object], args: tuple[object, ...]) -> None:
        self._asked = False
        self._stopped = threading.Event()
        self._cancel: Callable[[], object] = lambda: None
        self._end: Future[object] = Future()
        threading.Thread(target=self._run, args=(program, args), daemon=True).start()

    @property
    def is_settled(self) -> bool:
        """Whether it has ended, and the test knows how."""
        return self._asked and self._end.done()

    def tell(self) -> None:
        """Tell it to stop: set its event, or cancel its task as Ctrl-C does."""
        self._stopped.set()
        self._cancel()

    def stop(self) -> None:
        """Tell it to stop, wait for its end, raise what it died of."""
        self.tell()
        self.result()

    def result(self) -> None:
        """Wait for its own end, raise what it died of."""
        self._asked = True
        self._end.result(END_S)

    def _run(self, program: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            if inspect.iscoroutinefunction(program):
                asyncio.run(self._until_cancelled(program(*args)))
                # what it did not close is this test's affair
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
    """Forgive the clients their warnings, here only; and leave a running Kafka alone, which has no levers."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.koordinator_emulator_only)
            for warning in WARNINGS_OF_CLIENTS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="module", autouse=True)
def no_litter() -> Iterator[None]:
    """What the clients forgot is found while it is forgiven, and not in somebody else's test."""
    yield
    gc.collect()


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Callable[..., Running]]:
    """`start(program, *args)` runs a program (`Running`).

    What still runs is stopped at the end. One that does not stop fails the test, and so does one that died of
    something the test has not asked for.
    """
    request.getfixturevalue("koordinator")  # which goes after the programs that talk to it
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
