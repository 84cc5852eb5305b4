"""`koordinator share-offsets`: administer where share groups of any Kafka start, as `kafka-share-groups.sh` does.

Exit status: 0 success, 1 partial failure, with one line on stderr for each failure, 2 usage error.

| command | document with `--json` |
|---|---|
| describe | `{"offsets": [{group_id, topic, partition, start, leader_epoch, lag}], "errors": […]}` |
| reset | `{"offsets": [{group_id, topic, partition, start}], "errors": […]}` |
| delete | `{"group_id": …, "deleted": [topic, …], "errors": […]}` |
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from ..client.offsets import EARLIEST, LATEST
from ..client.share_offsets import delete_share_offsets, describe_share_offsets, reset_share_offsets
from . import group_options as options
from .group_reports import share_deletion_report, share_offsets_report, share_reset_report
from .groups import run, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..client.connection import Address


@click.group("share-offsets")
def share_offsets() -> None:
    """Describe, reset and delete the start offsets of share groups of any Kafka (KIP-932)."""


@share_offsets.command()
@click.argument("group_ids", metavar="GROUP...", nargs=-1, required=True, callback=options.ids)
@options.common_options
def describe(group_ids: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """Show start offsets and lag of share groups, in each partition that they have read."""
    result = run(bootstrap, timeout, lambda admin: describe_share_offsets(admin, group_ids))
    return write(share_offsets_report(result), as_json=as_json)


def _topics(*, is_required: bool) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(
        "--topic",
        "topics",
        multiple=True,
        required=is_required,
        metavar="TOPIC",
        callback=options.ids,
        help="A topic (repeatable).",
    )


def _timestamp_ms(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """Parse `--to-datetime 2026-11-29T10:00:00Z`; without an offset it is in UTC."""
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r}: give a time such as 2026-11-29T10:00:00Z") from None
    return int((time if time.tzinfo else datetime.fromisoformat(f"{time.isoformat()}+00:00")).timestamp() * 1000)


@share_offsets.command()
@click.argument("group_id", metavar="GROUP", callback=options.single_id)
@_topics(is_required=False)
@click.option("--all-topics", is_flag=True, help="All topics that the group has read.")
@click.option("--to-earliest", is_flag=True, help="Start with the first record.")
@click.option("--to-latest", is_flag=True, help="Start with the next record.")
@click.option(
    "--to-datetime", "timestamp_ms", metavar="TIME", callback=_timestamp_ms, help="Start with the first record since."
)
@click.option("--dry-run", is_flag=True, help="Show the offsets, and change nothing.")
@options.common_options
def reset(  # noqa: PLR0913 - one argument per option
    group_id: str,
    topics: tuple[str, ...],
    timestamp_ms: int | None,
    bootstrap: tuple[Address, ...],
    timeout: float,
    *,
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Change the start offsets of a share group without members, and forget its records in flight."""
    if all_topics == bool(topics):
        raise click.UsageError("give either --all-topics, or at least one --topic")
    if to_earliest + to_latest + (timestamp_ms is not None) != 1:
        raise click.UsageError("give one of --to-earliest, --to-latest and --to-datetime")
    at = timestamp_ms if timestamp_ms is not None else EARLIEST if to_earliest else LATEST
    wanted = None if all_topics else topics
    result = run(bootstrap, timeout, lambda admin: reset_share_offsets(admin, group_id, wanted, at, is_dry_run=dry_run))
    return write(share_reset_report(result), as_json=as_json)


@share_offsets.command()
@click.argument("group_id", metavar="GROUP", callback=options.single_id)
@_topics(is_required=True)
@options.common_options
def delete(
    group_id: str, topics: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool
) -> int:
    """Delete the start offsets of a share group without members, in all partitions of topics."""
    result = run(bootstrap, timeout, lambda admin: delete_share_offsets(admin, group_id, topics))
    return write(share_deletion_report(group_id, result), as_json=as_json)
