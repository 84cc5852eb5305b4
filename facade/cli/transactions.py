"""`koordinator transactions`: the transactional ids of any Kafka from 3.0 on, with a plaintext listener.

Exit status as of `koordinator groups`. With `--json` stdout has one document.

| command | document |
|---|---|
| list | `{"transactions": [{transactional_id, state, producer_id, producer_epoch, timeout_ms, started_ms, partitions, \
coordinator}], "errors": […]}` |
| abort | `{"aborted": [transactional_id, …], "errors": […]}` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..client.transactions import STATES, abort_transactions, list_transactions
from . import group_options as options
from .group_reports import abort_report, transactions_report
from .groups import run, write

if TYPE_CHECKING:
    from ..client.connection import Address


@click.group()
def transactions() -> None:
    """List and abort transactions of any Kafka from 3.0 on."""


@transactions.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="List only transactions in this state (repeatable).",
)
@options.common_options
def list_(states: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """List the transactions of all brokers: state, producer, start and partitions."""
    result = run(bootstrap, timeout, lambda admin: list_transactions(admin, states))
    return write(transactions_report(result), as_json=as_json)


@transactions.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, callback=options.ids)
@options.common_options
def abort(ids: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """Abort Ongoing transactions, and fence their producers."""
    result = run(bootstrap, timeout, lambda admin: abort_transactions(admin, ids))
    return write(abort_report(result), as_json=as_json)
