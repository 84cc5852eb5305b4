"""`koordinator transactions`: the transactional ids of any Kafka from 3.0 on, with a plaintext listener.

Exit status as of `koordinator groups`. With `--json` stdout has one document:
`{"transactions": [{transactional_id, state, producer_id, producer_epoch, timeout_ms, started_ms, partitions,
coordinator}], "errors": […]}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..client.transactions import STATES, list_transactions
from . import group_options as options
from .group_reports import transactions_report
from .groups import run, write

if TYPE_CHECKING:
    from ..client.connection import Address


@click.command()
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="List only transactions in this state (repeatable).",
)
@options.common_options
def transactions(states: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """List the transactions of all brokers: state, producer, start and partitions. Needs Apache Kafka 3.0 or newer."""
    result = run(bootstrap, timeout, lambda admin: list_transactions(admin, states))
    return write(transactions_report(result), as_json=as_json)
