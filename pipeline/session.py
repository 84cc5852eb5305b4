"""A Spark session for a job: on this machine, on a cluster, or on a Spark Connect server.

Spark's own log goes to a file, which is named when Spark does not start.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from . import java
from .troubles import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = "local[*]"
"""The master when none is named: all cores of this machine."""

ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
}
"""What the tables depend on, wherever Spark runs; and that rows are not sorted by their folder to be written.

The rows of a load are mostly of one folder, and by default Spark would sort all of them to write one file at a time.
"""

ON_THIS_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.codegen.cache.maxEntries": "4000",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}
"""Nothing listens to other machines; adaptive execution joins shuffle partitions that are small.

By default Spark goes over to sorting all rows where a task has more than 128 groups to gather lists in. And of the
classes it makes of plans, 1,400 in a load, it remembers 100: it would make and compile the same ones again and again.
Nobody waits for an answer meanwhile, so the collector of garbage is the one that costs least, not that pauses least.
"""

QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
}
"""For what is small: starting, and compiling what runs once, would take most of the time.

With one level of compilation Java has 48 MB for its code instead of 240, which all tables fill; then it says so on
stdout, and compiles no more.
"""

COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
"""What chooses a collector of garbage. Java does not start if two are chosen."""

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
"""Where Linux says who gets huge pages; `[madvise]`: who asks for them.

With them the work of big loads takes some 4% less processor time. Java elsewhere does not know the option, and says so
where it is of no use.
"""

OF_ALL_JAVA = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
"""Variables with options for whatever Java is started."""

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""A variable that is set by spark-submit: it has started Java, and knows the master."""

GIB = 1 << 30


class NoSpark(Refused):
    """Spark did not start."""


@contextmanager
def opened(
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    big: bool = False,
) -> Iterator[SparkSession]:
    """A session on `master` (spark-submit's if None, else this machine), or of the Spark Connect server `remote`.

    `settings` are Spark's own, and come last. `big` says that there is so much to do that Java should optimize.
    Raises java.JavaMissing or NoSpark.
    """
    settings = settings or {}
    if remote is not None:
        yield from _of(_connected(remote, settings))
        return
    if master is None and SUBMITTED in os.environ:
        builder = SparkSession.builder
        for name, value in (ALWAYS | dict(settings)).items():
            builder = builder.config(name, value)
        yield from _of(builder.getOrCreate())
        return
    master = master or os.environ.get("MASTER") or HERE
    with tempfile.TemporaryDirectory(prefix="koordinator-spark-") as scratch:
        os.environ["JAVA_HOME"] = str(java.home(Path(scratch) / "java"))
        # Spark's own guess is `python3`, which need not be the one that has us
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        log = Path(scratch) / "spark.log"
        own = on_this_machine(big=big) if master.startswith("local") else {}
        builder = SparkSession.builder.appName("koordinator").master(master)
        for name, value in (ALWAYS | own | dict(settings)).items():
            builder = builder.config(name, value)
        try:
            with _quiet(log):
                session = builder.getOrCreate()
        except Exception as error:
            raise NoSpark(f"Spark does not start on {master}: {_last_words(log) or error}") from error
        yield from _of(session)


def on_this_machine(*, big: bool) -> dict[str, str]:
    """The settings of a session here. A collector of garbage that the environment chooses for all Java is not ours."""
    settings = ON_THIS_MACHINE | {"spark.driver.memory": _memory()} | ({} if big else QUICK)
    options = settings["spark.driver.extraJavaOptions"]
    if any(COLLECTOR.search(os.environ.get(name, "")) for name in OF_ALL_JAVA):
        options = COLLECTOR.sub("", options).strip()
    if big and HUGE_PAGES.exists() and "[madvise]" in HUGE_PAGES.read_text(encoding="ascii"):
        options += " -XX:+UseTransparentHugePages"
    return settings | {"spark.driver.extraJavaOptions": options.strip()}


def _connected(remote: str, settings: Mapping[str, str]) -> SparkSession:
    try:
        session = SparkSession.builder.remote(remote).getOrCreate()
        for name, value in (ALWAYS | dict(settings)).items():
            session.conf.set(name, value)
    except Exception as error:
        raise NoSpark(f"no Spark Connect server answers at {remote}: {error}") from error
    return session


def _of(session: SparkSession) -> Iterator[SparkSession]:
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _quiet(log: Path) -> Iterator[None]:
    """What Java writes to stderr goes to the file; it keeps what it has inherited when it was started."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _last_words(log: Path) -> str:
    """What Java said last that is no stack."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    said = [line for line in lines if line.strip() and not line.startswith("\t") and "WARN" not in line]
    return said[-1] if said else ""


def _memory() -> str:
    """A quarter of the machine's, from 1 to 8 GiB: Spark's default of 1 GiB is for toys."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        whole = 4 * GIB
    return f"{max(1, min(8, whole // 4 // GIB))}g"
