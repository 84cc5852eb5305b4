"""A short run of `make fuzz`, in every test run."""

from __future__ import annotations

import random

import pytest
from builders.cluster_fuzzing import Cluster
from builders.corpus import everything, findings, made, seeds
from builders.fuzzing import Crowd, Noise
from builders.secure_fuzzing import Sasl, Tls
from builders.valid_frames import served
from clients.frame_clients import Wire

from koordinator.wire.apis import APIS
from koordinator.wire.messages.heartbeat import HeartbeatRequest

FRAMES = 3_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_noise_raises_nothing_and_leaves_nothing(seed: int) -> None:
    run = Noise(random.Random(f"noise {seed}"), everything())
    while run.ring.tally.frames < FRAMES:
        run.step()
    run.ring.end()
    assert run.ring.tally.closed > FRAMES / 20, "it is noise"
    assert run.ring.tally.answers > FRAMES / 20, "some of it is understood"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_crowd_is_answered_in_order_and_leaves_nothing(seed: int) -> None:
    run = Crowd(random.Random(f"crowd {seed}"))
    while run.ring.tally.frames < FRAMES:
        run.step()
    run.ring.end()
    assert run.ring.tally.answers > FRAMES * 0.4, "others meet a closed connection"
    assert not [reason for reason in run.ring.tally.reasons if "would be lost" in reason]


@pytest.mark.slow
def test_corrupted_logins_raise_nothing_and_leave_nothing() -> None:
    run = Sasl(random.Random("sasl"), everything())
    while run.ring.tally.frames < FRAMES:
        run.step()
    run.ring.end()
    assert run.ring.tally.answers > FRAMES / 20, "some of it is understood"
    reasons = " ".join(run.ring.tally.reasons)
    assert "a request before the authentication" in reasons
    assert "SaslAuthenticate" in reasons


@pytest.mark.slow
def test_corrupted_handshakes_and_records_end_their_connection_alone() -> None:
    run = Tls(random.Random("tls"), everything())
    while run.ring.tally.frames < FRAMES:
        run.step()
    tally = run.ring.tally
    assert tally.answers > FRAMES / 20, "some records are read"
    assert {"DECRYPTION_FAILED_OR_BAD_RECORD_MAC", "WRONG_VERSION_NUMBER"} <= tally.reasons.keys()
    assert len(tally.reasons) > 5, "handshakes fail in several ways"


def test_the_corpus_has_every_version_of_every_api_and_is_as_it_is_made() -> None:
    by_version = {(int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")) for frame in seeds()}
    assert by_version == {(int(key), version) for key, version in served()}
    rows = [line.split() for line in made().splitlines() if not line.startswith("#")]
    assert [bytes.fromhex(row[-1]) for row in rows] == list(seeds()), (
        "make it again: PYTHONPATH=tests/support python -m builders.corpus"
    )
    assert {row[0] for row in rows} == {api.name for api in APIS.values()}


def test_an_earlier_finding_does_not_recur() -> None:
    for frames in findings().values():
        wire = Wire()
        peer = wire.connect()
        for frame in frames:
            if peer.closed is None:
                wire.send(peer, frame)
        wire.wait(1_000_000)
        wire.trace.events()
        assert wire.ask(wire.connect(), HeartbeatRequest(group_id="g", member_id="m"), 4) is not None


def test_the_same_seed_does_the_same_things() -> None:
    runs = [Crowd(random.Random(5)) for _ in range(2)]
    for run in runs:
        while run.ring.tally.frames < 300:
            run.step()
    assert runs[0].ring.last == runs[1].ring.last
    assert runs[0].ring.tally.answers == runs[1].ring.tally.answers


@pytest.mark.slow
def test_the_same_seed_does_the_same_things_to_a_cluster() -> None:
    runs = [Cluster(random.Random(5)) for _ in range(2)]
    for run in runs:
        while run.ring.tally.frames < 100:
            run.step()
        run.ring.end()
    assert runs[0].ring.last == runs[1].ring.last
    assert runs[0].ring.tally.answers == runs[1].ring.tally.answers > 0
