"""Applications of Python's stream and task libraries: they consume, commit, rebalance and stop on the emulator.

Each library has a virtual environment of its own, which is removed afterwards.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import venv
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from brokers.kafka_releases import run

from koordinator import Cluster, Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROGRAMS = Path(__file__).parent / "programs"

INSTALL_S = 300
WAIT_S = 180
LOOK_S = 0.05

TOPIC = "in"
PARTITIONS = 4
EACH = 40
"""Records before, during and after the time with two instances."""


@dataclass(frozen=True)
class App:
    """A library, pinned; `group` is the consumer group of its application, "" if it has none."""

    packages: tuple[str, ...]
    group: str = "svc"


APPS = {
    "faststream": App(("faststream[kafka]==0.7.8",)),
    "quixstreams": App(("quixstreams==3.28.1",)),
    "faust": App(("faust-streaming==0.15.3",)),
    "arroyo": App(("sentry-arroyo==2.48.0",)),
    "celery": App(("celery==5.7.0", "kombu[confluentkafka]"), group=f"{TOPIC}-consumer-group"),
    "bytewax": App(("bytewax[kafka]==0.21.1",), group=""),
}


class Instance:
    """A running program; `lines` are those it has printed."""

    def __init__(self, command: list[str], folder: Path, log: Path) -> None:
        self.lines: list[str] = []
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines.extend(line.strip() for line in self._process.stdout)

    def end(self, signum: int | None = signal.SIGTERM) -> int:
        """End it with a signal, or let it end; return its exit status, -9 if it did not end by itself."""
        if signum is not None and self._process.poll() is None:
            self._process.send_signal(signum)
        try:
            self._process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        with self._process:
            self._reader.join()
        return self._process.returncode

    @property
    def values(self) -> list[str]:
        """The values of records that an application has printed."""
        return [line for line in self.lines if line.startswith("v")]

    @property
    def errors(self) -> str:
        """The end of its stderr."""
        return "\n".join(self._log.read_text().splitlines()[-15:])


def wait_until(what: str, is_so: Callable[[], bool], *instances: Instance) -> None:
    """Wait, at most WAIT_S."""
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end, f"not within {WAIT_S} s: {what}\n" + "\n".join(each.errors for each in instances)
        time.sleep(LOOK_S)


@contextmanager
def environment(app: App) -> Iterator[Path]:
    """Install a library into an environment of its own; yield the environment's Python."""
    with TemporaryDirectory(prefix="koordinator-app-") as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        pip = ("-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile")
        run(str(python), *pip, *app.packages, timeout_s=INSTALL_S)
        yield python


def played(name: str) -> str:
    """Play the application of a library; return what was seen. AssertionError if it does not work."""
    app = APPS[name]
    with environment(app) as python, Emulator(topics={TOPIC: PARTITIONS}) as cluster, ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        command = [str(python), str(PROGRAMS / f"with_{name}.py"), cluster.bootstrap_servers, TOPIC, "svc"]

        def started(number: int) -> Instance:
            place = folder / str(number)
            place.mkdir()
            instance = Instance(command, place, folder / f"{number}.log")
            stack.callback(instance.end, signal.SIGKILL)
            return instance

        def produce(part: int) -> None:
            values = range(part * EACH, (part + 1) * EACH)
            if name == "celery":
                run(*command, str(values.start), str(values.stop), timeout_s=WAIT_S)
            else:
                cluster.produce(TOPIC, *({"value": f"v{each}", "partition": each % PARTITIONS} for each in values))

        return _shared(cluster, app.group, started, produce) if app.group else _alone(started, produce)


def _alone(started: Callable[[int], Instance], produce: Callable[[int], None]) -> str:
    produce(0)
    one = started(1)
    status = one.end(None)
    assert (status, len(one.values)) == (0, EACH), (status, one.values, one.errors)
    return f"reads {EACH} records to the end; it uses no group"


def _shared(cluster: Cluster, group_id: str, started: Callable[[int], Instance], produce: Callable[[int], None]) -> str:
    group = cluster.group(group_id)
    one = started(1)
    wait_until("a first member", lambda: len(group.members) == 1 and group.state == "Stable", one)

    def committed() -> int:
        return sum(offset for (topic, _), offset in group.offsets.items() if topic == TOPIC)

    def committed_all_of(parts: int, *instances: Instance) -> None:
        # Faust commits every 2.8 s: a rebalance before that repeats records, also on a broker
        wait_until("their offsets", lambda: committed() == parts * EACH, *instances)

    def all_of(parts: int, *instances: Instance) -> None:
        wanted = {f"v{each}" for each in range(parts * EACH)}
        wait_until(
            f"{len(wanted)} values",
            lambda: wanted <= {value for each in instances for value in each.values},
            *instances,
        )

    produce(0)
    all_of(1, one)
    committed_all_of(1, one)
    two = started(2)
    wait_until("two members", lambda: len(group.members) == 2 and group.state == "Stable", one, two)
    produce(1)
    all_of(2, one, two)
    committed_all_of(2, one, two)
    first_status = one.end()
    wait_until("one member again", lambda: len(group.members) == 1 and group.state == "Stable", two)
    produce(2)
    all_of(3, one, two)
    statuses = (first_status, two.end())
    assert statuses == (0, 0), f"exit statuses {statuses}\n{one.errors}\n{two.errors}"
    wait_until("no members", lambda: group.state == "Empty")
    seen = len(one.values) + len(two.values)
    assert committed() == 3 * EACH, f"{committed()} records committed of {3 * EACH}"
    return f"{3 * EACH} records, {seen - 3 * EACH} of them twice; all committed, the group is Empty"


if __name__ == "__main__":
    for chosen in sys.argv[1:] or APPS:
        sys.stdout.write(f"{chosen}: {played(chosen)}\n")
