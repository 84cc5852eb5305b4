"""Six real consumers bounce as static and as dynamic members, and change their protocol: `make demo`.

The cluster runs as `koordinator serve`, with a live page; kafka-python, confluent-kafka and aiokafka provide two
members each, each in its own process; in the rolling upgrade confluent-kafka provides all, or Java's client half of
them where there is a JDK with Maven. The demo checks every claim and exits with 0 only if all hold. HOLD=1 keeps the
page until Ctrl-C; KEEP=DIR keeps the trace and the counts of each group in that folder, for `make report`. The steps
are in `bouncing/acts.py`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from bouncing import acts, java_client, kept, show, verdicts
from bouncing.processes import Company, LateError
from bouncing.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bouncing.verdicts import Verdict
    from rich.console import Console

GROUP_MAX_SIZE = 2

PROMPT = {"group.consumer.heartbeat.interval.ms": 200, "group.consumer.assignment.interval.ms": 0}
"""Members of consumer groups learn of a change at their next heartbeat, by default within 5 s."""

TERMINATED = 143
"""Exit status of shells after SIGTERM."""


def main() -> int:
    """Run the demo. Exit status 0: all claims hold; 1: a claim failed or a wait timed out; 130, 143: a signal."""
    signal.signal(signal.SIGTERM, terminate)
    to = show.console()
    started_at = time.monotonic()
    folder = Path(os.environ["KEEP"]) if "KEEP" in os.environ else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        # the counts of an earlier run do not belong to this trace
        (folder / kept.SEEN).unlink(missing_ok=True)
    run_id = f"demo-{uuid.uuid4()}"
    with Server(folder and folder / kept.TRACE, run_id) as server, Company() as company:
        try:
            found = play(to, company, server)
        except LateError as error:
            to.print(f"\n{error}", style="bold red", markup=False)
            for who, text in company.complaints().items():
                to.print(f"\n{who} said:\n{text}", markup=False, highlight=False)
            return 1
        except KeyboardInterrupt:
            to.print("\ninterrupted", style="bold red")
            return 130
        status = conclude(to, found, time.monotonic() - started_at)
        if os.environ.get("HOLD"):
            hold(to, server)
    if folder is not None:
        kept.write_seen(folder, run_id)
    return status


def terminate(_signal: int, _frame: object) -> NoReturn:
    """End the demo and its processes after SIGTERM."""
    sys.exit(TERMINATED)


def hold(to: Console, server: Server) -> None:
    """Keep the page until Ctrl-C."""
    to.print(f"\nStill to be seen: {server.page}; Ctrl-C ends it", markup=False)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


def play(to: Console, company: Company, server: Server) -> list[Verdict]:
    """Play the acts in order. Raises LateError when a wait exceeds its limit."""

    def tell(text: str) -> None:
        to.print(f"  {text}", markup=False)

    found: list[Verdict] = []
    cluster = server.remote.cluster()
    to.print(f"A cluster at {cluster.bootstrap_servers}; watch it live: {server.page}", markup=False)
    with acts.Scene(cluster, company, tell) as scene:
        show.heading(
            to,
            "Static members",
            "Six processes, each with a group.instance.id, are bounced one after the other. A closed static consumer "
            "does not leave its group, and neither does a killed one: the group waits for it, for its session timeout.",
        )
        static = acts.bounces(scene, "static", static=True, ways=("closed", "killed"))
        show.members(to, static)
        show.lanes(to, static.processes, static.bounced_from, static.ended_at)
        show.timeline(to, static)
        found += verdicts.of_static(static)

        show.heading(
            to,
            "Dynamic members",
            "The same without group.instance.id: each consumer leaves when it is closed and comes back as somebody "
            "new; everybody gives up all partitions, twice.",
        )
        dynamic = acts.bounces(scene, "dynamic", static=False, ways=("closed", "closed"))
        show.members(to, dynamic)
        show.lanes(to, dynamic.processes, dynamic.bounced_from, dynamic.ended_at)
        show.timeline(to, dynamic)
        found += verdicts.of_dynamic(dynamic)

        show.heading(to, "A fenced duplicate", "A second process with a group.instance.id that is in use.")
        fenced = acts.fencing(scene)
        show.fenced(to, fenced)
        found += verdicts.of_fencing(fenced)

    full = server.remote.create("full", config={"group.max.size": GROUP_MAX_SIZE})
    with acts.Scene(full, company, tell) as scene:
        show.heading(
            to, "A full group", f"A cluster with group.max.size={GROUP_MAX_SIZE}, and one more of each client."
        )
        refused = acts.full(scene, GROUP_MAX_SIZE)
        show.refused(to, refused)
        found += verdicts.of_refusals(refused)

    clients = ("confluent-kafka", "java") if java_client.class_path() else ("confluent-kafka",)
    rolling = server.remote.create("rolling", config=PROMPT)
    with acts.Scene(rolling, company, tell) as scene:
        show.heading(
            to,
            "A rolling upgrade",
            f"Six members ({' and '.join(clients)}) are replaced one by one: classic members by members with "
            "group.protocol=consumer, and then back. Records keep arriving.",
        )
        upgraded = acts.upgrade(scene, clients)
        show.lanes(to, upgraded.processes, upgraded.rolled_from, upgraded.ended_at)
        found += verdicts.of_upgrade(upgraded)
    return found


def conclude(to: Console, found: Sequence[Verdict], took_s: float) -> int:
    """Print the verdicts; return the exit status."""
    show.verdicts(to, found)
    false = sum(not each.is_true for each in found)
    if false or not found:
        to.print(f"{false} of {len(found)} claims were false; {took_s:.0f} s", style="bold red")
        return 1
    to.print(f"All {len(found)} claims were true; {took_s:.0f} s", style="bold green")
    return 0


if __name__ == "__main__":
    sys.exit(main())
