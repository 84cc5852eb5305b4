"""Read a topic into a folder with Spark's Kafka source, and print it: kafka_source.py BOOTSTRAP TOPIC FOLDER.

This is a program because a running JVM accepts no further jars. The jars belong to the newest connector that is
complete in Maven Central; Spark itself may be newer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyspark
from brokers.kafka_releases import CACHE, fetched

from koordinator.pipeline import session

CONNECTOR = "4.2.0"
TOKENS = "4.0.0"
QUERY_S = 600


def jars() -> list[str]:
    """Return the jars that the source needs in addition to Spark's."""
    folder = fetched(
        CACHE / f"spark-sql-kafka-{CONNECTOR}",
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTOR}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{TOKENS}",
    )
    present = {_artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").iterdir()}
    return [str(jar) for jar in sorted(folder.iterdir()) if _artifact(jar) not in present]


def _artifact(jar: Path) -> str:
    return jar.name.rpartition("-")[0]


def main(bootstrap: str, topic: str, folder: str) -> None:
    """Read the new records into the folder, and print all offsets and values in it as JSON."""
    settings = {"spark.jars": ",".join(jars()), "spark.driver.memory": "1g"}
    with session.open_session("local[2]", settings=settings) as spark:
        growing = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        growing = growing.option("assign", json.dumps({topic: [0]})).option("startingOffsets", "earliest")
        writer = growing.load().selectExpr("offset", "CAST(value AS STRING) AS value").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
        query = writer.start(f"{folder}/lines")
        assert query.awaitTermination(QUERY_S), f"not done within {QUERY_S} s"
        rows = [tuple(row) for row in spark.read.parquet(f"{folder}/lines").orderBy("offset").collect()]
    sys.stdout.write(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
