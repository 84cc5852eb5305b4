"""The Spark session of a job: on this machine, on a cluster, or on a Spark Connect server.

Spark's own log goes to a file, whose last message is shown if Spark does not start.
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
from .job_errors import JobRefused
from .session_options import GATEWAY_PORT_VARIABLE, LOCAL_MASTER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COMMON_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # patterns of log lines are literals of SQL
    "spark.sql.parser.escapedStringLiterals": "false",
    # else the tables of the fold have a file for every partition of its shuffle in stores that are not local
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
}
"""Settings that the tables and their files depend on, wherever Spark runs."""

START_SETTINGS = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""Settings that only a new session accepts.

Else PySpark tells Java the place in Python of each of the thousands of expressions, which takes up to half of the time
of making a plan.
"""

LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.codegen.cache.maxEntries": "4000",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}
"""Settings of a local session: no listener for other machines; adaptive execution merges small shuffle partitions.

By default Spark sorts all rows of a task that collects lists for more than 128 groups. It caches 100 compiled plan
classes, and a load uses 1,400: it would compile the same ones repeatedly. The parallel garbage collector costs the
least processor time; its pauses do not matter in a batch job. Here the driver lists folders faster than a Spark job.
"""

SMALL_INPUT_SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.buffer.pageSize": "1m",
}
"""Settings for small inputs, where starting and compiling would take most of the time.

Each task that sorts or aggregates would allocate and clear up to 64 MB at once, and with several of them Java's heap
would grow by a gigabyte.

With one compilation level Java reserves 48 MB for code instead of 240 MB. All tables together exceed that; Java then
prints a warning to stdout and stops compiling.
"""

GC_OPTION = re.compile(r"-XX:\+Use\w+GC\b")
"""The option that selects a garbage collector. Java does not start with two of them."""

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
"""The file in which Linux names its policy for huge pages; `[madvise]` gives them to processes that request them.

They save about 4 % of processor time in big loads. Elsewhere Java rejects the option, or warns that it has no effect.
"""

JAVA_OPTION_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables with options for every Java process."""

GIB = 1 << 30


class SparkNotStarted(JobRefused):
    """Spark did not start."""


@contextmanager
def open_session(
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    big: bool = False,
) -> Iterator[SparkSession]:
    """Open a session on `master`, or on the Spark Connect server `remote`.

    Without both the master of spark-submit counts, else this machine. `settings` are Spark's own and override the
    others. `big` announces a large input, for which Java should optimize. Raises JavaNotFound or SparkNotStarted.
    """
    settings = settings or {}
    if remote is not None:
        yield from _stopped_after(_connect(remote, settings))
        return
    if master is None and GATEWAY_PORT_VARIABLE in os.environ:
        builder = SparkSession.builder.config(map={**COMMON_SETTINGS, **START_SETTINGS, **settings})
        yield from _stopped_after(builder.getOrCreate())
        return
    master = master or os.environ.get("MASTER") or LOCAL_MASTER
    with tempfile.TemporaryDirectory(prefix="koordinator-spark-") as scratch:
        os.environ["JAVA_HOME"] = str(java.find_java_home(Path(scratch) / "java"))
        # Spark's default is `python3`, which may be an interpreter without koordinator
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        log = Path(scratch) / "spark.log"
        local = local_settings(big=big) if master.startswith("local") else {}
        builder = SparkSession.builder.appName("koordinator").master(master)
        builder = builder.config(map={**COMMON_SETTINGS, **START_SETTINGS, **local, **settings})
        try:
            with _stderr_to(log):
                session = builder.getOrCreate()
        except Exception as error:
            raise SparkNotStarted(f"Spark does not start on {master}: {_last_message(log) or error}") from error
        yield from _stopped_after(session)


def local_settings(*, big: bool) -> dict[str, str]:
    """Return the settings of a local session. A garbage collector chosen by the environment overrides this module's."""
    settings = LOCAL_SETTINGS | {"spark.driver.memory": _memory()} | ({} if big else SMALL_INPUT_SETTINGS)
    options = settings["spark.driver.extraJavaOptions"]
    if any(GC_OPTION.search(os.environ.get(name, "")) for name in JAVA_OPTION_VARIABLES):
        options = GC_OPTION.sub("", options).strip()
    if big and HUGE_PAGES.exists() and "[madvise]" in HUGE_PAGES.read_text(encoding="ascii"):
        options += " -XX:+UseTransparentHugePages"
    return settings | {"spark.driver.extraJavaOptions": options.strip()}


def _connect(remote: str, settings: Mapping[str, str]) -> SparkSession:
    try:
        session = SparkSession.builder.remote(remote).getOrCreate()
        for name, value in (COMMON_SETTINGS | dict(settings)).items():
            session.conf.set(name, value)
    except Exception as error:
        raise SparkNotStarted(f"{remote}: no Spark Connect server responds ({error})") from error
    return session


def _stopped_after(session: SparkSession) -> Iterator[SparkSession]:
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect stderr to the file while Java starts; the Java process keeps the redirection."""
    sys.stderr.flush()
    original = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(original, 2)
            os.close(original)


def _last_message(log: Path) -> str:
    """Return Java's last message that is not part of a stack trace."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    messages = [line for line in lines if line.strip() and not line.startswith("\t") and "WARN" not in line]
    return messages[-1] if messages else ""


def _memory() -> str:
    """Return a quarter of the machine's memory, from 1 to 8 GiB; Spark's default of 1 GiB is too small."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        whole = 4 * GIB
    return f"{max(1, min(8, whole // 4 // GIB))}g"
