"""A server on a data directory, killed again and again while static members commit, and the resulting losses.

Every member is a thread with one connection. It commits, produces, sends heartbeats, and remembers each
acknowledgement. After a kill it waits for the next server and continues as the same member: any error then is a
disturbance, and any acknowledged data that is missing is lost. Transactional producers, a read_committed reader, and
members of a share group run beside them: a record that they have accepted is never delivered again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from builders import requests

from brokers import transactional_soak
from brokers.committed_reader import CommittedReader
from brokers.share_worker import ShareWorker
from brokers.soak_client import ANSWER_S, PAUSE_S, SoakClient
from brokers.transactional_soak import TransactionalProducer
from koordinator.client.connection import Address, Deadline
from koordinator.emulator.storage.data_dir import LOG
from koordinator.emulator.storage.log_recovery import read_log
from koordinator.wire.errors import Error
from koordinator.wire.messages import heartbeat
from koordinator.wire.records import Record, read_records, write_batch

if TYPE_CHECKING:
    from pathlib import Path

    from koordinator.client.connection import BrokerConnection

READY_S = 60
"""Time limit for the server to be ready on a busy machine."""

TOPIC = "t"

WORKERS = 2
"""Members of the share group, which read the records of TOPIC."""

PRODUCERS = 2
"""Transactional producers, one for each version of transactions."""


@dataclass
class Figures:
    """The results. Times are seconds from process start to the first answered heartbeat."""

    kills: int = 0
    commits: int = 0
    records: int = 0
    transactions: int = 0
    aborted: int = 0
    read: int = 0
    accepted: int = 0
    lost: list[str] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    cut_off: int = 0
    first_heartbeat_s: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        times = sorted(self.first_heartbeat_s)
        return (
            f"kills {self.kills}, commits acknowledged {self.commits}, records acknowledged {self.records}, "
            f"transactions committed {self.transactions}, aborted {self.aborted}, committed records read {self.read}, "
            f"records accepted in a share group {self.accepted}, "
            f"lost {len(self.lost)}, members disturbed {len(self.disturbed)}, torn writes cut off {self.cut_off}, "
            f"restart to first heartbeat answered {times[len(times) // 2]:.2f} s (median), {times[-1]:.2f} s (most)"
        )


class Server:
    """`koordinator serve` on a data directory."""

    def __init__(self, directory: Path, port: int, *arguments: str) -> None:
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "koordinator",
                "serve",
                "--data-dir",
                str(directory),
                "--port",
                str(port),
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
        watchdog = threading.Timer(READY_S, self.process.kill)
        watchdog.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        watchdog.cancel()
        if not line:
            raise AssertionError(f"the server did not start: {self.end()}")
        self.ready: dict[str, Any] = json.loads(line)
        self.address = Address("127.0.0.1", self.ready["port"])

    def end(self, number: signal.Signals = signal.SIGKILL) -> str:
        """Send a signal; return the stderr output."""
        self.process.send_signal(number)
        assert self.process.stderr is not None
        with self.process:
            return self.process.stderr.read()


class Member(SoakClient):
    """One static member, its offsets and its records."""

    def __init__(self, number: int, group: str, figures: Figures, lives: Lives) -> None:
        super().__init__(f"member-{number}", figures, lives)
        self.number, self.group = number, group
        self.member_id, self.generation = "", -1
        self.acknowledged, self.asked = -1, -1
        self.records: list[bytes] = []

    def _live(self, link: BrokerConnection) -> None:
        life = self.lives.number
        if self.generation < 0:
            self._join(link)
        self._beat(link)
        self.lives.first_heartbeat(life)
        self._look(link)
        while not self.lives.over.is_set():
            self._commit(link)
            if self.asked % 3 == 0:
                self._produce(link)
            self._beat(link)

    def _join(self, link: BrokerConnection) -> None:
        wish = requests.join_group(
            self.group, "", self.name, session_ms=60_000, rebalance_ms=60_000, protocols=(("range", b""),)
        )
        self.lives.together.wait(ANSWER_S)
        joined = self._ask(link, wish, 5)
        assert joined.error_code == 0, joined
        plan = {each.member_id: b"mine" for each in joined.members}
        request = requests.sync_group(self.group, joined.generation_id, joined.member_id, plan, self.name)
        synced = self._ask(link, request, 3)
        assert synced.error_code == 0, synced
        self.member_id, self.generation = joined.member_id, joined.generation_id
        self.lives.settled.release()

    @property
    def _named(self) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.name,
        }

    def _note(self, what: str, error: int) -> None:
        if error:
            self.figures.disturbed.append(f"{self.name}: {what} in life {self.lives.number}: {Error(error).name}")

    def _beat(self, link: BrokerConnection) -> None:
        answer = self._ask(link, heartbeat.HeartbeatRequest(**self._named), 3)
        self._note("Heartbeat", answer.error_code)

    def _commit(self, link: BrokerConnection) -> None:
        self.asked += 1
        at = (TOPIC, self.number)
        who = (self.generation, self.member_id, self.name)
        request = requests.offset_commit(self.group, {at: self.asked}, *who)
        answer = self._ask(link, request, 7)
        error = answer.topics[0].partitions[0].error_code
        self._note("OffsetCommit", error)
        if not error:
            self.acknowledged = self.asked
            self.figures.commits += 1

    def _produce(self, link: BrokerConnection) -> None:
        value = b"%d/%d" % (self.number, self.asked)
        request = requests.produce(TOPIC, {self.number: write_batch([Record(timestamp=0, value=value)])})
        answer = self._ask(link, request, 7)
        error = answer.responses[0].partition_responses[0].error_code
        self._note("Produce", error)
        if not error:
            self.records.append(value)
            self.figures.records += 1

    def _look(self, link: BrokerConnection) -> None:
        """Check after a restart: the state is the acknowledged one, or the one requested last."""
        answer = self._ask(link, requests.offset_fetch(5, self.group, [(TOPIC, self.number)]), 5)
        offset = answer.topics[0].partitions[0].committed_offset
        if offset not in {self.acknowledged, self.asked}:
            self.figures.lost.append(
                f"{self.name} in life {self.lives.number}: offset {offset}, acknowledged {self.acknowledged}"
            )
        self.acknowledged = self.asked = offset


class Lives:
    """The members' shared knowledge of the server."""

    def __init__(self, address: Address, figures: Figures, members: int) -> None:
        self.address, self._figures = address, figures
        self.number = 0
        self.since = 0.0
        self.over = threading.Event()
        self.together = threading.Barrier(members)
        self.settled = threading.Semaphore(0)
        self.beaten = threading.Event()

    def begin(self, since: float) -> None:
        """Begin a new life: a server is about to start."""
        self.number += 1
        self.since = since
        self.beaten.clear()

    def first_heartbeat(self, life: int) -> None:
        """Note the first answered heartbeat in a life of the server."""
        if life == self.number and not self.beaten.is_set():
            self.beaten.set()
            if life:
                self._figures.first_heartbeat_s.append(time.monotonic() - self.since)


def _wait_committed(figures: Figures) -> None:
    """Wait for the next transaction: a busy machine has its first one late."""
    before, deadline = figures.transactions, Deadline(READY_S)
    while figures.transactions == before:
        assert deadline.left(), f"no transaction was committed in {READY_S} s"
        time.sleep(PAUSE_S)


def soak(directory: Path, kills: int, seed: int, members: int = 4) -> Figures:
    """Kill the server `kills` times at random moments, while members of three groups and transactions are at work."""
    chance, figures = random.Random(seed), Figures()
    topics = ("--topic", f"{TOPIC}:{members}", "--topic", f"{transactional_soak.TOPIC}:{PRODUCERS}")
    arguments = (*topics, "--config", "group.initial.rebalance.delay.ms=1000")
    server = Server(directory, 0, *arguments)
    lives = Lives(server.address, figures, members)
    clients = [Member(number, f"g{number % 2}", figures, lives) for number in range(members)]
    producers = [
        TransactionalProducer(number, random.Random(f"{seed} {number}"), figures, lives) for number in range(PRODUCERS)
    ]
    reader = CommittedReader(transactional_soak.TOPIC, PRODUCERS, figures, lives)
    accepted: set[Any] = set()
    workers = [
        ShareWorker(number, TOPIC, random.Random(f"{seed} share {number}"), accepted, figures, lives)
        for number in range(WORKERS)
    ]
    try:
        for thread in (*clients, *producers, reader, *workers):
            thread.start()
        for client in clients:
            assert lives.settled.acquire(timeout=READY_S), f"{client.name} has not joined: {client.died}"
        for _ in range(kills):
            assert lives.beaten.wait(READY_S), f"no heartbeat was answered in life {lives.number}"
            _wait_committed(figures)
            time.sleep(chance.uniform(0, 0.5))
            figures.cut_off += server.end().count("cut off")
            figures.kills += 1
            lives.begin(time.monotonic())
            server = Server(directory, server.address.port)
        assert lives.beaten.wait(READY_S), "no heartbeat was answered in the last life"
        time.sleep(0.2)
        lives.over.set()
        for thread in (*producers, reader):
            thread.join(ANSWER_S)
        reader.read_rest()
    finally:
        lives.over.set()
        for thread in (*clients, *producers, reader, *workers):
            thread.join(ANSWER_S)
        said = server.end(signal.SIGTERM)
    assert not said, said
    for client in clients:
        assert client.died is None, client.died
        log = directory / f"{TOPIC}-{client.number}" / LOG
        # a client that was never answered on a busy machine has no log
        found = read_log(log.read_bytes() if log.exists() else b"")
        assert not found.damage
        there = {record.value for _, batch in found.batches for record in read_records(batch)}
        figures.lost += [f"{client.name}: record {value!r}" for value in client.records if value not in there]
    for worker in workers:
        assert worker.died is None, worker.died
    for producer in producers:
        assert producer.died is None, producer.died
        figures.lost += producer.judge(directory)
        figures.aborted += len(producer.aborted)
    assert reader.died is None, reader.died
    figures.lost += reader.judge(producers)
    figures.read = len(reader.seen)
    return figures
