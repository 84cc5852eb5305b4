"""A schema registry that keeps its schemas on the emulator: Apicurio Registry with Kafka storage, and Avro records.

The registry reads its topic at each start. So a restart shows that the schemas are on the emulator and nowhere else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from apps import PROGRAMS, App, Instance, environment, wait_until
from brokers.kafka_releases import CACHE, DEPENDENCY_PLUGIN, fetched, run
from java import JVM, free_port

from koordinator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

REGISTRY = "registry"

VERSION = "3.3.3"
"""The release of Apicurio Registry; its distribution needs JAVA_MIN."""

JAVA_MIN = 21

PYTHON = App(("confluent-kafka[avro,schemaregistry]==2.16.1",))

SERDES = "3.1.7"
"""The release of Apicurio's serializers for Java."""

FETCH_S = 600
PLAY_S = 180

TOPIC = "orders"
ORDERS = [{"id": f"o{number}", "amount": number} for number in range(5)]

CONFLICT = "409"
"""The answer of a registry to a schema that is not compatible."""


def java() -> str:
    """Return a Java that can run the registry: that of PATH, or one of the machine's. Raises AssertionError."""
    machine = sorted(map(str, Path("/usr/lib/jvm").glob("*/bin/java")))
    for command in (shutil.which("java"), os.environ.get("JAVA_HOME", "") + "/bin/java", *machine):
        if command is None or not Path(command).exists():
            continue
        said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
        version = re.search(r'version "(\d+)', said)
        if version and int(version[1]) >= JAVA_MIN:
            return command
    raise AssertionError(f"the registry needs Java {JAVA_MIN} or newer: install it, or set JAVA_HOME to one")


def distribution() -> Path:
    """Return the folder of the registry, fetching it with Maven if it is absent."""
    folder = CACHE / f"apicurio-registry-{VERSION}"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=CACHE) as work:
            artifact = f"-Dartifact=io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
            copy = (f"{DEPENDENCY_PLUGIN}:copy", artifact, f"-DoutputDirectory={work}")
            run("mvn", "--batch-mode", "--quiet", *copy, timeout_s=FETCH_S)
            (archive,) = Path(work).glob("*.tar.gz")
            unpacked = Path(work, "registry")
            unpacked.mkdir()
            run("tar", "-xzf", str(archive), "-C", str(unpacked), timeout_s=FETCH_S)
            unpacked.rename(folder)
    return folder


@contextmanager
def running(servers: str, port: int) -> Iterator[Instance]:
    """Start the registry on the emulator, wait until it answers, and end it afterwards."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        settings = {
            "APICURIO_STORAGE_KIND": "kafkasql",
            "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": servers,
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(port),
        }
        words = [f"{name}={value}" for name, value in settings.items()]
        jar = str(distribution() / "quarkus-run.jar")
        instance = Instance(
            ["env", *words, java(), "-Xmx512m", *JVM[1:], "-jar", jar], Path(folder), Path(folder, "log")
        )
        stack.callback(instance.end, signal.SIGKILL)
        wait_until("an answer of the registry", lambda: subjects(port) is not None, instance)
        yield instance
        instance.end()


def subjects(port: int) -> list[str] | None:
    """Return the subjects with a schema; None while the registry does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/apis/ccompat/v7/subjects", timeout=30) as answer:
            found: list[str] = json.load(answer)
            return found
    except OSError:
        return None


def played(name: str) -> str:
    """Play the registry with clients; return what was seen. AssertionError if it does not work."""
    assert name == REGISTRY
    port = free_port()
    with environment(PYTHON) as python, Emulator(topics={TOPIC: 1}) as cluster, TemporaryDirectory() as folder:
        apis = f"http://127.0.0.1:{port}/apis"
        by_python = (str(python), str(PROGRAMS / "with_registry.py")), f"{apis}/ccompat/v7"
        jars = fetched(CACHE / f"apicurio-serdes-{SERDES}", f"io.apicurio:apicurio-registry-avro-serde-kafka:{SERDES}")
        by_java = ("java", *JVM, "-cp", f"{jars}/*", str(PROGRAMS / "WithRegistry.java")), f"{apis}/registry/v3"

        def client(act: str, by: tuple[tuple[str, ...], str] = by_python) -> list[str]:
            program, url = by
            command = [*program, act, cluster.bootstrap_servers, url, TOPIC]
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=PLAY_S,
                check=False,
                stdin=subprocess.DEVNULL,
                cwd=folder,
            )
            assert ran.returncode == 0, ran.stderr
            return ran.stdout.splitlines()

        with running(cluster.bootstrap_servers, port):
            assert subjects(port) == []
            (schema_id,) = client("write")
            assert [json.loads(line) for line in client("read")] == ORDERS
            client("write", by_java)
            for by in (by_python, by_java):
                assert [json.loads(line) for line in client("read", by)] == 2 * ORDERS, by
        values = [record.value for record in cluster.records(TOPIC)]
        # Java's text of the same schema differs, and has an id of its own
        own, other = ({(value or b"")[:5] for value in part} for part in (values[: len(ORDERS)], values[len(ORDERS) :]))
        assert own == {b"\0" + int(schema_id).to_bytes(4, "big")}, values
        assert len(other) == 1, values
        with running(cluster.bootstrap_servers, port):
            assert subjects(port) == [f"{TOPIC}-value"]
            for by in (by_python, by_java):
                assert [json.loads(line) for line in client("read", by)] == 2 * ORDERS, by
            assert client("refuse") == [CONFLICT]
            assert client("write") == [schema_id]
    return (
        f"{len(ORDERS)} Avro records written by each of Python and Java, and all read by both, also after a restart of"
        f" Apicurio Registry {VERSION}"
    )


if __name__ == "__main__":
    sys.stdout.write(f"{played(REGISTRY)}\n")
