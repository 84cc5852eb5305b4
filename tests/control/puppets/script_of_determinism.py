"""Script of `test_determinism`: a cluster with virtual time, puppets of every behaviour, and its trace."""

from __future__ import annotations

import json
import sys

from koordinator import Simulation

BEHAVIOURS = (
    "healthy",
    "manual",
    "straggler",
    "flapping",
    "silent",
    "never_syncs",
    "omits_members",
    "eager_only",
    "duplicate_instance_id",
)


def play(seed: int) -> list[dict[str, object]]:
    """Return the trace of the script."""
    with Simulation(topics={"t": 7, "u": 3}, brokers=3, seed=seed) as cluster:
        group, other = cluster.group("svc"), cluster.group("other")
        for number, behaviour in enumerate(BEHAVIOURS):
            protocols = ("cooperative-sticky", "range") if number % 2 else ("sticky", "range")
            group.create_puppet(
                behaviour, protocols, instance_id="x" if number % 4 == 0 else None, behaviour=behaviour
            ).join()
            cluster.pass_time(1)
        for name in "cab":
            other.create_puppet(name, ("cooperative-sticky",)).join()
        for name in "ab":
            other.create_puppet(f"w{name}").join()
        modern = cluster.group("modern")
        for name, behaviour in {"m": "straggler", "n": "never_revokes"}.items():
            modern.create_puppet(name, behaviour=behaviour, group_protocol="consumer").join()
        cluster.group("connect").create_puppet("w", protocol_type="connect", topics={"mirror": 3}).join()
        cluster.pass_time(40)
        cluster.move_coordinator("other", 3, load=1)
        cluster.nodes[1].kill()
        cluster.pass_time(20)
        group.advance(100, keep_alive="none")
        cluster.nodes[1].start()
        for puppet in other.puppets.values():
            if puppet.state == "stable":
                puppet.commit({("t", 0): 5}).leave()
        cluster.pass_time(5)
        return cluster.events()


if __name__ == "__main__":
    sys.stdout.write("\n".join(json.dumps(line) for line in play(int(sys.argv[1]))))
