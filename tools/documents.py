"""The parts of `docs/` that are made from the code: `make docs` renews them.

A part stands between two markers, `<!-- settings: … -->` and `<!-- end of settings -->`; what is around it is written
by hand. A test holds every part to what this program makes of it.
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
from typing import TYPE_CHECKING

import click
import fidelity
from clients import error_reactions
from clients.consumers import KINDS
from scenes import cookbook
from tables import table

from koordinator.cli.serve import serve
from koordinator.emulator.broker import broker, connections
from koordinator.emulator.config.settings import Settings, rules
from koordinator.emulator.core.data import fetch_sessions, log, produce, topic
from koordinator.emulator.core.groups.classic import join
from koordinator.emulator.http.openapi import document_of
from koordinator.emulator.server.build import Options, build
from koordinator.emulator.trace import messages as trace_messages
from koordinator.emulator.trace import trace
from koordinator.emulator.trace.vocabulary import vocabulary_json
from koordinator.fixtures import options as plugin_options
from koordinator.wire import primitives

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[1] / "docs"

OPENAPI = DOCS / "openapi.json"

VOCABULARY = DOCS.parent / "emulator" / "trace" / "vocabulary.json"
"""The words of the trace, as the pages and the data pipeline read them."""

RENEW = "make docs"
"""The command that runs this program."""

PART = re.compile(r"(<!-- (?P<name>[a-z ]+): [^\n]* -->\n).*?(<!-- end of (?P=name) -->\n)", re.DOTALL)

KIB = 1024
MIB = 1024 * KIB


def openapi() -> str:
    """The description of the HTTP API, as the server gives it at `/openapi.json`."""
    return json.dumps(document_of(build(Options()).control), indent=1) + "\n"


def settings_table() -> str:
    """Every setting that has an effect: its defaults in both profiles, its range, what it does."""
    fast, _ = Settings.of("fast")
    kafka, _ = Settings.of("kafka-defaults")
    rows = []
    for name, rule in rules().items():
        default, kafkas = _shown(fast.value(name)), _shown(kafka.value(name))
        if kafkas != default:
            default += f" (`kafka-defaults`: {kafkas})"
        allowed = rule.allowed
        rows.append((f"`{name}`", default, allowed, rule.doc))
    return table(("setting", "default", "allowed", "what it is"), rows)


def limits_table() -> str:
    """What is bounded by a constant, with the constant's value."""
    events = inspect.signature(trace.Trace).parameters["capacity"].default
    answers = f"{connections.ANSWERS_AT_ONCE} answers, or {_bytes(connections.ANSWER_BYTES_AT_ONCE)} of them"
    records = f"{_bytes(log.LOOKED_INTO_BYTES_MAX)}, {log.LOOKED_INTO_RECORDS_MAX:,} records"
    rows = (
        ("a text on the wire", f"{primitives.STRING_BYTES_MAX:,} bytes", "the connection is closed"),
        ("what a connection is answered at once", answers, "then the others have their turn"),
        (
            "what waits behind a request in hand",
            _bytes(connections.READ_AHEAD_BYTES),
            "no more is read until the answer has left",
        ),
        ("partitions of a topic", f"{topic.PARTITIONS_MAX:,}", "refused"),
        (
            "partitions in all fetch sessions",
            f"{fetch_sessions.PARTITIONS_MAX:,}",
            "further clients get no session, and do without",
        ),
        (
            "a new member that waits for its first answer",
            f"{join.NEW_MEMBER_JOIN_TIMEOUT_MS // 60_000} minutes",
            "it is removed, as in Kafka",
        ),
        ("a compressed batch that is looked into", records, "the batch's header answers for it"),
        (
            "old compressed messages (magic 0, 1) that are converted, in a partition of a request",
            _bytes(produce.CONVERTED_BYTES_MAX),
            "CORRUPT_MESSAGE (2)",
        ),
        ("the trace in memory", f"{events:,} events, or {_bytes(trace.BYTES_MAX)}", "the oldest go"),
        ("a message in the trace", _bytes(trace_messages.BODY_BYTES_MAX), '`{"omitted_bytes": n}` stands for its body'),
        ("a client's name in the log", f"{broker.SHOWN_MAX} characters", "the rest is cut off"),
    )
    return table(("what", "at most", "and beyond"), rows)


def reactions_table() -> str:
    """What clients do on the errors that have two numbers."""
    parts = [f"Measured with {', '.join(f'{kind} {version(kind)}' for kind in KINDS)}.\n"]
    for error in (
        error_reactions.MEMBER_ID_REQUIRED,
        error_reactions.GROUP_MAX_SIZE_REACHED,
        error_reactions.FENCED_INSTANCE_ID,
    ):
        head = (error, "client", *(f"`{name}`: {codes[error]}" for name, codes in error_reactions.CODES.items()))
        found = [row for row in error_reactions.ROWS if row.error == error]
        rows = []
        for row in found:
            kafka, kip = (_reaction(row.reaction(numbering)) for numbering in ("kafka", "kip"))
            rows.append((row.api, row.kind, kafka, "the same" if kip == kafka else kip))
        parts.append(table(head, rows))
    return "\n".join(parts)


def options_table() -> str:
    """What can be chosen for a run of pytest, in which places; the places in the order in which they count."""
    head = (
        "what it is",
        "1 argument, 2 marker, 5 `koordinator_config`",
        "3 command line",
        "4 environment",
        "6 ini file",
        "otherwise",
    )
    rows = []
    for option in plugin_options.OPTIONS:
        argument = f"`{option.argument}=`" if option.argument is not None else ""
        default = "as `Emulator` has it" if option.default is None else f"`{option.default}`"
        if option.name in OTHERWISE:
            default = OTHERWISE[option.name]
        flag = f"`{option.flag}={option.shown}`"
        rows.append((option.doc, argument, flag, f"`{option.variable}`", f"`{option.ini}`", default))
    return table(head, rows)


def serve_table() -> str:
    """Every option of `koordinator serve`, and the variable of the environment that says the same."""
    context = click.Context(serve)
    rows = []
    for option in serve.params:
        assert isinstance(option, click.Option), option
        shown = option.opts[0] if option.is_flag else f"{option.opts[0]} {option.make_metavar(context)}"
        shown = shown.replace("INTEGER RANGE", "N").replace("TEXT", "HOST")
        text, _, default = (option.help or "").partition("  [default: ")
        if option.show_default:
            default = str(option.default)
        rows.append((f"`{shown}`", f"`{option.envvar}`", default.rstrip("]"), text))
    return table(("option", "variable", "default", "what it is"), rows)


OTHERWISE = {"seed": "any; it is in the header", "bootstrap": ""}
"""What options are that have no default."""


def _reaction(reaction: error_reactions.Reaction) -> str:
    told = "nothing is raised" if reaction.told is None else f"`{reaction.told}`"
    return f"{told}; {reaction.then.value}"


def _shown(value: bool | int | str) -> str:  # noqa: FBT001 - a value of a setting
    """A value as it is written for `--config`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bytes(number: int) -> str:
    """A round number of bytes."""
    if number % MIB == 0:
        return f"{number // MIB} MiB"
    assert number % KIB == 0, number
    return f"{number // KIB} KiB"


def pipeline_tables() -> str:
    """Every table of the data pipeline with its columns."""
    schema = import_module("koordinator.pipeline.schema")
    parts = []
    for found in schema.TABLES.values():
        folders = "".join(f", in folders `{name}=`" for name in found.partitions)
        about = f"#### {found.path}\n\n{found.doc} Key: `{', '.join(found.key)}`{folders}.\n"
        rows = [
            (f"`{field.name}`", field.dataType.simpleString(), field.metadata["comment"])
            for field in found.columns.fields
        ]
        parts.append(f"{about}\n{table(('column', 'type', 'what it says'), rows)}")
    return "\n".join(parts)


def pipeline_reasons() -> str:
    """Why a row is in quarantine."""
    schema = import_module("koordinator.pipeline.schema")
    return table(("reason", "what was found"), [(f"`{name}`", text) for name, text in schema.REASONS.items()])


def pipeline_jobs() -> str:
    """Every job of `koordinator-pipeline` with its options."""
    homes = import_module("koordinator.pipeline.cli").HOMES
    parts = []
    for name, home in sorted(homes.items()):
        job = getattr(import_module(home), name)
        context = click.Context(job, info_name=name)
        rows = [record for each in job.params if (record := each.get_help_record(context))]
        about = (job.help or "").partition("\n\n")[0].replace("\n", " ")
        cells = [(f"`{option}`", " ".join(says.split())) for option, says in rows]
        parts.append(f"**`koordinator-pipeline {name}`**: {about}\n\n{table(('option', 'what it is'), cells)}")
    return "\n".join(parts)


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "clients.md": {"error codes": reactions_table},
    "cookbook.md": {"recipes": cookbook.cookbook_table},
    "fidelity.md": {
        "brokers": fidelity.brokers_table,
        "versions": fidelity.versions_table,
        "releases": fidelity.dialects_table,
        "missing": fidelity.missing_table,
        "scenarios": fidelity.scenarios_tables,
    },
    "operations.md": {"serve": serve_table, "settings": settings_table, "limits": limits_table},
    "pytest.md": {"options": options_table},
}
"""The made parts of each document."""

if find_spec("pyspark"):
    # what it is made of imports Spark
    PARTS["pipeline.md"] = {"jobs": pipeline_jobs, "reasons": pipeline_reasons, "tables": pipeline_tables}


def renewed(name: str, text: str) -> str:
    """A document with its parts made anew. Raises ValueError unless it has all of them, each once."""
    parts = PARTS[name]
    found = [match["name"] for match in PART.finditer(text)]
    if sorted(found) != sorted(parts):
        raise ValueError(f"{name}: has the parts {found}, not {list(parts)}")
    return PART.sub(lambda match: match[1] + "\n" + parts[match["name"]]() + "\n" + match[3], text)


def main() -> None:
    """Renew the documents that are not current, and name them."""
    for name in PARTS:
        path = DOCS / name
        text = path.read_text(encoding="utf-8")
        new = renewed(name, text)
        if new != text:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    for path, new in ((OPENAPI, openapi()), (VOCABULARY, vocabulary_json())):
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
