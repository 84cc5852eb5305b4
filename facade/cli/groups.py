"""`koordinator groups`: the consumer groups of any Kafka with a plaintext listener.

Exit status 0: everything was done; 1: something was refused or could not be asked, a line on stderr for each; 2: the
command was not understood. With `--json` stdout has one document, also when nothing could be done (see
`koordinator.cli.group_reports`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from ..client.admin import Admin
from ..client.groups import (
    STATES,
    Deletion,
    Description,
    GroupProblem,
    Listing,
    delete_groups,
    describe_groups,
    list_groups,
)
from ..client.members import Identity, Removal, remove_members
from ..client.problems import ClientError, refusal_of
from ..version import __version__
from . import group_options as options
from .group_reports import Report, deletion, description, listing, removal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..client.link import Address

_R = TypeVar("_R")

REFUSED = 1
"""The exit status when not everything was done."""


@click.group()
def groups() -> None:
    """List, describe, change and delete consumer groups of any Kafka."""


@groups.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only groups in this state. May be given more than once.",
)
@options.of_every_command
def list_(states: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """List the groups of all brokers."""
    result = _answer(bootstrap, timeout, lambda admin: list_groups(admin, states), Listing)
    return _say(listing(result), as_json=as_json)


@groups.command()
@click.argument("group_ids", metavar="GROUP...", nargs=-1, required=True, callback=options.texts)
@options.of_every_command
def describe(group_ids: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """Show state, members, assignments, committed offsets and lag of groups."""
    result = _answer(bootstrap, timeout, lambda admin: describe_groups(admin, group_ids), Description)
    return _say(description(result), as_json=as_json)


@groups.command("remove-members")
@click.argument("group_id", metavar="GROUP", callback=options.text)
@click.option(
    "--instance-id",
    "instance_ids",
    multiple=True,
    metavar="A[,B…]",
    callback=options.separated,
    help="Remove static members by their group.instance.id. May be given more than once.",
)
@click.option(
    "--member-id",
    "member_ids",
    multiple=True,
    metavar="M",
    callback=options.texts,
    help="Remove a member by its member id. May be given more than once.",
)
@click.option("--all", "everybody", is_flag=True, help="Remove all members.")
@click.option("--reason", metavar="TEXT", callback=options.reason, help="Why; for the log of the broker.")
@options.of_every_command
def remove_members_(  # noqa: PLR0913 - one argument per option
    group_id: str,
    instance_ids: tuple[str, ...],
    member_ids: tuple[str, ...],
    reason: str | None,
    bootstrap: tuple[Address, ...],
    timeout: float,
    *,
    everybody: bool,
    as_json: bool,
) -> int:
    """Remove members from a group, which then rebalances once (KIP-345). Needs Apache Kafka 2.4 or newer.

    A member that still runs joins again; stop it first.
    """
    identities = [
        *(Identity(instance_id=each) for each in instance_ids),
        *(Identity(member_id=each) for each in member_ids),
    ]
    if everybody == bool(identities):
        raise click.UsageError("either --all or at least one --instance-id or --member-id is wanted")
    wanted = None if everybody else identities
    result = _answer(bootstrap, timeout, lambda admin: remove_members(admin, group_id, wanted, reason), Removal)
    return _say(removal(group_id, result), as_json=as_json)


@groups.command()
@click.argument("group_ids", metavar="GROUP...", nargs=-1, required=True, callback=options.texts)
@options.of_every_command
def delete(group_ids: tuple[str, ...], bootstrap: tuple[Address, ...], timeout: float, *, as_json: bool) -> int:
    """Delete groups without members, with all their offsets."""
    result = _answer(bootstrap, timeout, lambda admin: delete_groups(admin, group_ids), Deletion)
    return _say(deletion(result), as_json=as_json)


def _answer(
    bootstrap: tuple[Address, ...],
    timeout: float,
    act: Callable[[Admin], _R],
    nothing: Callable[[tuple[()], tuple[GroupProblem, ...]], _R],
) -> _R:
    """What comes of it; `nothing` but the problem, if no broker answers."""
    with Admin(bootstrap, timeout, __version__) as admin:
        try:
            return act(admin)
        except ClientError as error:
            return nothing((), (GroupProblem(refusal_of(error)),))


def _say(report: Report, *, as_json: bool) -> int:
    """Write it; the exit status."""
    report.write(click.get_current_context().command_path, as_json=as_json)
    return REFUSED if report.problems else 0
