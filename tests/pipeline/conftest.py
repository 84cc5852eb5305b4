"""One Spark session for all pipeline tests. Without pyspark these modules are not imported."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HERE = Path(__file__).parent

FAST = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""A JVM that starts quickly, at the cost of a slower long run."""


WARNINGS_OF_SPARK = (
    "ignore::ResourceWarning",
    "ignore:.*:DeprecationWarning:pyspark",
    "ignore:.*:FutureWarning:pyspark",
)


class UnimportedModule(pytest.Module):
    """A test module that is not imported, because its imports would fail."""

    def collect(self) -> list[pytest.Item]:
        """Skip the module, or fail where Spark is required."""
        if "spark" in os.environ.get("KOORDINATOR_REQUIRE", "").split(","):
            raise self.CollectError("needs spark, which KOORDINATOR_REQUIRE names and this machine lacks")
        pytest.skip("needs spark: no pyspark found", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Collect a module without importing it where Spark is missing."""
    return None if find_spec("pyspark") else UnimportedModule.from_parent(parent, path=module_path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in this folder as needing Spark, and ignore Spark's warnings; first, because `-m needs` selects by
    marker.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.needs("spark"))
            for warning in WARNINGS_OF_SPARK:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start a session with two cores, or connect to the Spark Connect server in SPARK_REMOTE."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an optional dependency

    from koordinator.pipeline.session import COMMON_SETTINGS, START_SETTINGS  # noqa: PLC0415 - needs Spark, too

    builder = SparkSession.builder
    if "SPARK_REMOTE" not in os.environ:
        # Spark's default is `python3`, which may be an interpreter without koordinator
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master("local[2]").config(map=START_SETTINGS).config("spark.driver.extraJavaOptions", FAST)
        builder = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    session = builder.getOrCreate()
    for name, value in COMMON_SETTINGS.items():
        session.conf.set(name, value)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    # compiling or adapting a plan takes longer than running it on a handful of rows
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    yield session
    session.stop()
