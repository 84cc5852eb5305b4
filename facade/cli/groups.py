"""`koordinator groups`: administer the consumer groups of any Kafka.

Exit status: 0 success, 1 partial failure, with one line on stderr for each failure, 2 usage error. With `--json` stdout
has one document even if nothing succeeded (see `koordinator.cli.group_reports`).
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

import click

from koordinator.wire.errors import Error

from ..client.errors import ClientError, connection_failure
from ..client.groups import STATES, GroupFailure, Result, delete_groups, describe_groups, list_groups
from ..client.members import MemberToRemove, remove_members
from . import group_options as options
from .group_reports import Report, deletion_report, description_report, listing_report, removal_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..client.admin import Admin
    from ..client.connection import Address

_T = TypeVar("_T")

PARTIAL_FAILURE = 1
"""Exit status if any part of the command failed."""


@click.group()
def groups() -> None:
    """List, describe, change and delete consumer groups of any Kafka."""


@groups.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="List only groups in this state (repeatable).",
)
@options.common_options
def list_(states: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """List the groups of all brokers."""
    result = run(bootstrap, timeout, lambda admin: list_groups(admin, states))
    return write(listing_report(result), as_json=as_json)


@groups.command()
@click.argument("group_ids", metavar="GROUP...", nargs=-1, required=True, callback=options.ids)
@options.common_options
def describe(group_ids: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """Show state, members, assignments, committed offsets and lag of groups."""
    result = run(bootstrap, timeout, lambda admin: describe_groups(admin, group_ids))
    return write(description_report(result), as_json=as_json)


@groups.command("remove-members")
@click.argument("group_id", metavar="GROUP", callback=options.single_id)
@click.option(
    "--instance-id",
    "instance_ids",
    multiple=True,
    metavar="A[,B…]",
    callback=options.comma_separated_ids,
    help="Remove static members by their group.instance.id (repeatable).",
)
@click.option(
    "--member-id",
    "member_ids",
    multiple=True,
    metavar="M",
    callback=options.ids,
    help="Remove a member by its member id (repeatable).",
)
@click.option("--all", "all_members", is_flag=True, help="Remove all members.")
@click.option("--reason", metavar="TEXT", callback=options.reason, help="Reason for the broker's log.")
@options.common_options
def remove_members_(  # noqa: PLR0913 - one argument per option
    group_id: str,
    instance_ids: tuple[str, ...],
    member_ids: tuple[str, ...],
    reason: str | None,
    bootstrap: tuple[Address, ...],
    timeout: float,
    *,
    all_members: bool,
    as_json: bool,
) -> int:
    """Remove members from a classic or consumer group, which then rebalances once (KIP-345). Needs Kafka 2.4 or newer.

    Stop the members first: a running client joins again.
    """
    members = [
        *(MemberToRemove(instance_id=each) for each in instance_ids),
        *(MemberToRemove(member_id=each) for each in member_ids),
    ]
    if all_members == bool(members):
        raise click.UsageError("give either --all, or at least one --instance-id or --member-id")
    result = run(
        bootstrap,
        timeout,
        lambda admin: remove_members(admin, group_id, None if all_members else members, reason),
    )
    return write(removal_report(group_id, result), as_json=as_json)


@groups.command()
@click.argument("group_ids", metavar="GROUP...", nargs=-1, required=True, callback=options.ids)
@options.common_options
def delete(group_ids: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """Delete groups without members, with all their offsets."""
    result = run(bootstrap, timeout, lambda admin: delete_groups(admin, group_ids))
    return write(deletion_report(result), as_json=as_json)


def run(bootstrap: tuple[Address, ...], timeout: float, command: Callable[[Admin], Result[_T]]) -> Result[_T]:
    """Return the result of a command; if no broker answers, a result with only that failure."""
    with options.admin(bootstrap, timeout) as admin:
        try:
            return _with_suggestions(admin, command(admin))
        except ClientError as error:
            return Result((), (GroupFailure(connection_failure(error)),))


def _with_suggestions(admin: Admin, result: Result[_T]) -> Result[_T]:
    """Return the result with the most similar existing group in each failure of a group that does not exist."""
    if all(each.failure.code != Error.GROUP_ID_NOT_FOUND for each in result.failures):
        return result
    try:
        names = [group.group_id for group in list_groups(admin).successes]
    except ClientError:
        return result
    return Result(result.successes, tuple(_with_suggestion(each, names) for each in result.failures))


def _with_suggestion(failed: GroupFailure, names: list[str]) -> GroupFailure:
    # this command does not import the emulator, which has suggestions for its own names
    failure, similar = failed.failure, get_close_matches(failed.group_id or "", names, n=1)
    if failed.group_id in names:
        # it is a group of another kind
        return failed
    if failure.code != Error.GROUP_ID_NOT_FOUND or not similar:
        return failed
    message = f"{failure.message.removesuffix('.')}; did you mean {similar[0]!r}?"
    return replace(failed, failure=replace(failure, message=message))


def write(report: Report, *, as_json: bool) -> int:
    """Write the report and return the exit status."""
    report.write(click.get_current_context().command_path, as_json=as_json)
    return PARTIAL_FAILURE if report.failures else 0
