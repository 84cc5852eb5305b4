"""Generate the reference parts of `docs/` from the code (`make docs`).

A part stands between two markers, `<!-- settings: … -->` and `<!-- end of settings -->`; the text around it is written
by hand. A test compares every part with the output of this program.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import click
import fidelity
import http_pages
import laboratory
import llms
from clients import error_reactions, lives
from clients.consumers import KINDS
from scenes import cookbook, rebalance_costs
from tables import table

from koordinator.cli.serve import serve
from koordinator.emulator.broker import connections
from koordinator.emulator.config.settings import PARTITIONS_MAX, Settings, attribute, rules
from koordinator.emulator.core.data import fetch_sessions, log
from koordinator.emulator.core.groups.classic.group import NEW_MEMBER_JOIN_TIMEOUT_MS
from koordinator.emulator.core.groups.classic.transitions import TRANSITIONS
from koordinator.emulator.http.openapi import document
from koordinator.emulator.trace import messages as trace_messages
from koordinator.emulator.trace import trace
from koordinator.emulator.trace.vocabulary import vocabulary_json
from koordinator.fixtures import options as plugin_options
from koordinator.wire import primitives

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[1] / "docs"

SUITES = DOCS.parent / "tests" / "suites"

OPENAPI = DOCS / "openapi.json"

VOCABULARY = DOCS.parent / "emulator" / "trace" / "vocabulary.json"
"""The vocabulary of the trace, for the pages and the data pipeline."""

RENEW = "make docs"
"""The command that runs this program."""

PART = re.compile(r"(<!-- (?P<name>[a-z -]+?): [^\n]* -->\n).*?(<!-- end of (?P=name) -->\n)", re.DOTALL)

PROSE_WIDTH = 100
"""Columns at which prose in Markdown wraps."""

KIB = 1024
MIB = 1024 * KIB


def openapi() -> str:
    """Return the OpenAPI document that the server returns at `/openapi.json`."""
    return json.dumps(document(), indent=1) + "\n"


def settings_table() -> str:
    """Return the table of effective settings: defaults in both profiles, range, meaning."""
    fast, _ = Settings.of("fast")
    kafka, _ = Settings.of("kafka-defaults")
    rows = []
    for name, rule in rules().items():
        default, kafka_default = (_config_value(getattr(each, attribute(name))) for each in (fast, kafka))
        if kafka_default != default:
            default += f" (`kafka-defaults`: {kafka_default})"
        rows.append((f"`{name}`", default, rule.allowed, rule.doc))
    return table(("setting", "default", "allowed", "meaning"), rows)


def limits_table() -> str:
    """Return the table of fixed limits, with the value of each constant."""
    events = inspect.signature(trace.Trace).parameters["capacity"].default
    turn = f"{connections.RESPONSES_PER_TURN} responses, or {_bytes(connections.RESPONSE_BYTES_PER_TURN)} of them"
    records = f"{_bytes(log.LOOKUP_BYTES_MAX)}, {log.LOOKUP_RECORDS_MAX:,} records"
    rows = (
        ("a string on the wire", f"{primitives.STRING_BYTES_MAX:,} bytes", "the connection is closed"),
        ("responses to one connection in a turn", turn, "other connections are served first"),
        (
            "data behind a request in progress",
            _bytes(connections.READ_AHEAD_BYTES),
            "the server stops reading until it has sent the response",
        ),
        ("partitions of a topic", f"{PARTITIONS_MAX:,}", "refused"),
        (
            "partitions in all fetch sessions",
            f"{fetch_sessions.PARTITIONS_MAX:,}",
            "further clients get no session, and work without",
        ),
        (
            "a new member's wait for its first JoinGroup response",
            f"{NEW_MEMBER_JOIN_TIMEOUT_MS // 60_000} minutes",
            "the member is removed, as in Kafka",
        ),
        ("a compressed batch that is searched for a timestamp", records, "the batch header is used"),
        (
            "converted compressed messages (magic 0, 1) in one partition of a request",
            _bytes(log.LOOKUP_BYTES_MAX),
            "CORRUPT_MESSAGE (2)",
        ),
        ("the trace in memory", f"{events:,} events, or {_bytes(trace.BYTES_MAX)}", "the oldest events are dropped"),
        ("a message in the trace", _bytes(trace_messages.BODY_BYTES_MAX), '`{"omitted_bytes": n}` replaces its body'),
        ("a client's name in the log", f"{connections.SHOWN_MAX} characters", "it is truncated"),
    )
    return table(("what", "limit", "beyond the limit"), rows)


def reactions_table() -> str:
    """Return the tables of client reactions to the errors with two numbers."""
    parts = [f"Measured with {', '.join(f'{kind} {version(kind)}' for kind in KINDS)}.\n"]
    for error in (
        error_reactions.MEMBER_ID_REQUIRED,
        error_reactions.GROUP_MAX_SIZE_REACHED,
        error_reactions.FENCED_INSTANCE_ID,
    ):
        head = (error, "client", *(f"`{name}`: {codes[error]}" for name, codes in error_reactions.CODES.items()))
        rows = []
        for row in (row for row in error_reactions.ROWS if row.error == error):
            kafka, kip = (_reaction(row.reaction(numbering)) for numbering in ("kafka", "kip"))
            rows.append((row.api, row.kind, kafka, "the same" if kip == kafka else kip))
        parts.append(table(head, rows))
    return "\n".join(parts)


def options_table() -> str:
    """Return the table of pytest options, with a column for each place in order of precedence."""
    head = (
        "option",
        "1 argument, 2 marker, 5 `koordinator_config`",
        "3 command line",
        "4 environment",
        "6 ini file",
        "default",
    )
    rows = []
    for option in plugin_options.OPTIONS:
        argument = f"`{option.name}=`" if option in plugin_options.ARGUMENT_OPTIONS else ""
        default = f"`{option.default_text}`" if option.default_text else ""
        flag = f"`{option.pytest_flag}={option.pytest_metavar}`"
        rows.append((option.help, argument, flag, f"`{option.variable}`", f"`{option.ini}`", default))
    return table(head, rows)


def serve_table() -> str:
    """Return the table of `koordinator serve`'s options and their environment variables."""
    context = click.Context(serve)
    rows = []
    for option in serve.params:
        assert isinstance(option, click.Option), option
        shown = option.opts[0] if option.is_flag else f"{option.opts[0]} {option.make_metavar(context)}"
        default = option.show_default if isinstance(option.show_default, str) else str(option.default)
        rows.append((f"`{shown}`", f"`{option.envvar}`", default if option.show_default else "", option.help))
    return table(("option", "variable", "default", "meaning"), rows)


def _reaction(reaction: error_reactions.Reaction) -> str:
    error = "nothing is raised" if reaction.told is None else f"`{reaction.told}`"
    return f"{error}; {reaction.then.value}"


def _config_value(value: bool | int | str) -> str:  # noqa: FBT001 - a value of a setting
    """Return a value in the notation of `--config`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bytes(number: int) -> str:
    """Return a number of bytes in KiB or MiB."""
    if number % MIB == 0:
        return f"{number // MIB} MiB"
    assert number % KIB == 0, number
    return f"{number // KIB} KiB"


def pipeline_tables() -> str:
    """Return every table of the data pipeline with its columns."""
    schema = import_module("koordinator.pipeline.schema")
    parts = []
    for spec in schema.TABLES.values():
        origin = "".join(f", with `{name}`" for name in spec.origin)
        text = fill(f"{spec.doc} Key: `{', '.join(spec.key)}`{origin}.", PROSE_WIDTH, break_on_hyphens=False)
        heading = f"### {spec.path}\n\n{text}\n"
        rows = [
            (f"`{field.name}`", field.dataType.simpleString(), field.metadata["comment"])
            for field in spec.columns.fields
        ]
        parts.append(f"{heading}\n{table(('column', 'type', 'meaning'), rows)}")
    return "\n".join(parts)


def pipeline_reasons() -> str:
    """Return the table of quarantine reasons."""
    schema = import_module("koordinator.pipeline.schema")
    return table(("reason", "meaning"), [(f"`{name}`", text) for name, text in schema.REASONS.items()])


def pipeline_jobs() -> str:
    """Return every job of `koordinator-pipeline` with its options."""
    modules = import_module("koordinator.pipeline.cli").Jobs.modules
    parts = []
    for name, module in sorted(modules.items()):
        job = getattr(import_module(module), name)
        context = click.Context(job, info_name=name)
        rows = [record for each in job.params if (record := each.get_help_record(context))]
        summary = (job.help or "").partition("\n\n")[0].replace("\n", " ")
        cells = [(f"`{option}`", " ".join(text.split())) for option, text in rows]
        text = fill(summary, PROSE_WIDTH, break_on_hyphens=False)
        parts.append(f"### koordinator-pipeline {name}\n\n{text}\n\n{table(('option', 'meaning'), cells)}")
    return "\n".join(parts)


def group_states_diagram() -> str:
    """Return the table of group transitions as a Mermaid state diagram."""
    causes: dict[tuple[str, str], list[str]] = {}
    for (before, cause), after in TRANSITIONS.items():
        causes.setdefault((before.value, after.value), []).append(cause.value)
    arrows = [f"    {before} --> {after} : {'<br/>'.join(labels)}" for (before, after), labels in causes.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> Empty", *arrows, "    Dead --> [*]", "```"])


def suites_table() -> str:
    """Return the recorded results of `make suites`."""
    results = json.loads((SUITES / "results.json").read_text(encoding="utf-8"))
    return table(("suite", "result"), [(f"`{name}`", seen) for name, seen in results.items()])


def differences_table() -> str:
    """Return the commands of Kafka's tools whose output differs, and why."""
    explained = json.loads((SUITES / "differences.json").read_text(encoding="utf-8"))
    return table(("command", "reason"), [(f"`{step}`", reason) for step, reason in explained.items()])


def clients_table() -> str:
    """Return what the clients of `make suites` did, and when."""
    recorded = json.loads((SUITES / "clients.json").read_text(encoding="utf-8"))
    rows = [
        (
            each["version"],
            *(_played(each["plays"], [name]) for name in lives.OF_GROUPS),
            _played(each["plays"], list(lives.CONSUMER)),
            _played(each["plays"], list(lives.TRANSACTIONS)),
            each["date"],
        )
        for each in recorded.values()
        if lives.CLASSIC.keys() & each["plays"].keys()
    ]
    return table(("client", *lives.OF_GROUPS, "the same with KIP-848", "transactions", "played on"), rows)


def _played(plays: dict[str, str], names: list[str]) -> str:
    """Return a mark for plays that a client can do, and the reasons for others; "-" where it has no such protocol."""
    if not plays.keys() & set(names):
        return "-"
    failed = [f"{name.rpartition(': ')[2]}{plays[name].removeprefix('no')}" for name in names if "no: " in plays[name]]
    if len(names) == 1:
        return plays[names[0]].removeprefix("no: ") if failed else "yes"
    return f"yes, except {'; '.join(failed)}" if failed else "yes"


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "clients.md": {"clients": clients_table, "error codes": reactions_table},
    "consumer-groups.md": {"costs": rebalance_costs.costs_table},
    "cookbook.md": {"recipes": cookbook.cookbook_table},
    "fidelity.md": {
        "brokers": fidelity.brokers_table,
        "versions": fidelity.versions_table,
        "releases": fidelity.dialects_table,
        "hard parts": fidelity.hard_parts_table,
        "hard parts of consumer groups": fidelity.consumer_hard_parts_table,
        "chapters": fidelity.chapters_table,
    },
    "group-states.md": {"group states": group_states_diagram},
    "http-api.md": {"paths": http_pages.operations_page},
    "lab.md": {
        "answers": laboratory.answers_table,
        "claims": laboratory.claims_table,
        "matrix": laboratory.matrix_tables,
        "work": laboratory.work_table,
    },
    "not-emulated.md": {"missing": fidelity.missing_table},
    "operations.md": {"serve": serve_table, "settings": settings_table, "limits": limits_table},
    "pytest.md": {"options": options_table},
    "suites.md": {"differences": differences_table, "suites": suites_table},
}
"""The generated parts of each document."""

for lever in http_pages.levers():
    PARTS.setdefault(f"levers/{lever.page.name}", {}).update(lever.parts)

if find_spec("pyspark"):
    # the schema module imports Spark
    PARTS |= {
        "pipeline-inputs.md": {"reasons": pipeline_reasons},
        "pipeline-operations.md": {"jobs": pipeline_jobs},
        "pipeline-tables.md": {"tables": pipeline_tables},
    }


def renewed(name: str, text: str) -> str:
    """Return a document with its parts regenerated. Raises ValueError unless it has each part exactly once."""
    parts = PARTS[name]
    names = [match["name"] for match in PART.finditer(text)]
    if sorted(names) != sorted(parts):
        raise ValueError(f"{name}: has the parts {names}, not {list(parts)}")
    return PART.sub(lambda match: match[1] + "\n" + parts[match["name"]]() + "\n" + match[3], text)


def main() -> None:
    """Update the documents that are out of date, and print their paths."""
    laboratory.LAB.write_text(laboratory.played(), encoding="utf-8")
    for name in PARTS:
        path = DOCS / name
        text = path.read_text(encoding="utf-8")
        new = renewed(name, text)
        if new != text:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    for path, new in (
        (OPENAPI, openapi()),
        (VOCABULARY, vocabulary_json()),
        (fidelity.SCENARIOS, fidelity.scenarios_csv()),
        (llms.LLMS, llms.llms()),
    ):
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
