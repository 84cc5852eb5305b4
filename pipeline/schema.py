"""Every table of the pipeline: its layer, key, columns with their types, and what each column says.

A row belongs to a *trace*: what one cluster (or one log of a broker or a client) wrote from its start to its end.
`(trace_id, seq)` names an event; every derived row can be traced back to events. Times that end in `_us` are
microseconds since the epoch: `wall_us` by the wall's clock, `group_us` and `t_…_us` by the group's own clock, which
tests move; durations are in the group's time unless a column says otherwise. A member is called by its
`group.instance.id` if it is static, else by its member id: that is the column `member`.

In the store a folder `batch=` holds what one load brought, and is written once. A folder `home=` holds the traces
that were first seen in that load, whole: what is derived from them is written again when more of them comes.

The tables grow by columns, never otherwise: `SCHEMA_VERSION` says which these are.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

SCHEMA_VERSION = 1
"""Of the tables; a store that was written by another one is refused."""

TRACE_SCHEMA_VERSIONS = (1,)
"""The versions of the emulator's trace files that are understood."""

STRING, INT, LONG, SHORT = StringType(), IntegerType(), LongType(), ShortType()
DOUBLE, BOOL, TIMESTAMP, STRINGS = DoubleType(), BooleanType(), TimestampType(), ArrayType(StringType())
PARTITIONS = MapType(StringType(), ArrayType(IntegerType()))
"""Topic -> partitions."""

OFFSET = StructType([StructField("topic", STRING), StructField("partition", INT), StructField("offset", LONG)])


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `key` names a row; its files are in the folder `layer/name`, in one folder for each of `partitions`."""

    layer: str
    name: str
    doc: str
    key: tuple[str, ...]
    columns: StructType
    partitions: tuple[str, ...] = ("home",)

    @property
    def path(self) -> str:
        """Where it is, in the store."""
        return f"{self.layer}/{self.name}"

    @property
    def names(self) -> list[str]:
        """The names of its columns, in their order."""
        names: list[str] = self.columns.fieldNames()
        return names


TABLES: dict[str, Table] = {}
"""All of them, by `layer/name`."""


def _table(
    path: str, doc: str, *columns: tuple[str, DataType, str], key: str, partitions: tuple[str, ...] = ("home",)
) -> Table:
    layer, _, name = path.partition("/")
    fields = [StructField(column, kind, nullable=True, metadata={"comment": says}) for column, kind, says in columns]
    table = TABLES[path] = Table(layer, name, doc, tuple(key.split()), StructType(fields), partitions)
    return table


_TRACE = ("trace_id", STRING, "whose trace: one cluster's, or one log's")
_RUN = ("run_id", STRING, "the run of a test suite, as CI names it; of a log, its trace")
_TEST = ("test_id", STRING, "the test, as pytest names it")
_CLUSTER = ("cluster", STRING, "the cluster's id")
_GROUP = ("group_id", STRING, "the group")
_WHOSE = (_TRACE, _RUN, _TEST, _CLUSTER, _GROUP)
_REBALANCE_NO = ("rebalance_no", INT, "which rebalance of the group, from 1 on")
_MEMBER = ("member", STRING, "the member: its group.instance.id if it is static, else its member id")
_SOFTWARE = (
    ("client_id", STRING, "what the client calls itself"),
    ("client_software", STRING, "the client library, as it says in ApiVersions (KIP-511)"),
    ("client_version", STRING, "its version"),
)

BRONZE_LINE = _table(
    "bronze/line",
    "The lines as they were read, one row each; only text inputs have them.",
    ("source_file", STRING, "the file"),
    ("block_start", LONG, "where in the file the part begins that one task read, in bytes"),
    ("row_id", LONG, "counts the lines of a part, from any number on"),
    ("raw", STRING, "the line, untouched"),
    ("ingest_id", STRING, "of the file: a hash of its path, size and time of change"),
    ("file_size", LONG, "the file's size then, in bytes"),
    ("ingested_at", TIMESTAMP, "when it was read"),
    key="source_file block_start row_id",
    partitions=("batch",),
)

FILE = _table(
    "bronze/file",
    "The files of each load; that one is here says that all of its load was read.",
    ("source_file", STRING, "the file"),
    ("ingest_id", STRING, "of the file: a hash of its path, size and time of change"),
    ("file_size", LONG, "its size then, in bytes"),
    key="ingest_id",
    partitions=("batch",),
)

TRACE_HOME = _table(
    "bronze/trace",
    "The traces that were first seen in a load: that load is their home.",
    ("trace_id", STRING, "whose trace: one cluster's, or one log's"),
    key="trace_id",
)

QUARANTINE = _table(
    "bronze/quarantine",
    "The rows that could not be taken over, and why.",
    ("raw", STRING, "the line; of a conflict, and of a Parquet file, the row as JSON"),
    ("reason", STRING, "one of REASONS"),
    ("detail", STRING, "what was found and what is wanted"),
    ("source_file", STRING, "the file"),
    ("line_no", LONG, "the line in it, from 1 on; null in Parquet files"),
    ("ingest_id", STRING, "of the file"),
    key="source_file line_no",
    partitions=("batch",),
)

REASONS = {
    "bad_json": "not a JSON object, or a column of another type than the schema's",
    "bad_line": "a line of the coordinator's log that has the beginning of one we know, and another end",
    "unknown_version": "a header with a schema version that is not understood",
    "unknown_kind": "an event of a kind that is not in the trace's schema",
    "unknown_api": "a request or response with an api_key that Kafka has not",
    "missing_key": "no seq, kind, or wall_ts",
    "conflict": "another event with the same trace_id and seq has come before, and says something else",
}
"""Why a row is in quarantine."""

API_KEY_MAX = 92
"""The greatest number of an API that Kafka has (4.3)."""

KINDS = (
    "request",
    "response",
    "state",
    "member",
    "avoided_static",
    "timer",
    "offsets",
    "superseded",
    "conn",
    "dropped",
    "node",
    "clock",
    "puppet",
    "rule",
    "hold",
    "verb",
    "leader",
)
"""The kinds of a trace's events; `header` and `test` are lines, too, but no events."""

COUNTS = _table(
    "bronze/counts",
    "Where the rows of a file went: read = event + header + test + ignored + duplicate + quarantined.",
    ("source_file", STRING, "the file"),
    ("ingest_id", STRING, "of the file"),
    ("source", STRING, "what kind of file it is: one of SOURCES"),
    ("read", LONG, "rows read"),
    ("event", LONG, "became events"),
    ("header", LONG, "were headers of traces"),
    ("test", LONG, "said how a test ended"),
    ("ignored", LONG, "empty lines, and of a log those that are not about groups"),
    ("duplicate", LONG, "were there before, equal"),
    ("quarantined", LONG, "went to quarantine"),
    ("more", LONG, "of a log: events that lines told beside their first; no rows of their own"),
    key="ingest_id",
    partitions=("batch",),
)

SOURCES = {
    "koordinator": "a trace of the emulator: JSON lines (plain, gzip or zstd) or Parquet",
    "server_log": "server.log of a Kafka broker",
    "dms": "coordinator.log of Huawei Cloud DMS",
    "java": "log of a Java consumer",
    "librdkafka": "log of a librdkafka client (debug=cgrp)",
    "kafka_python": "log of a kafka-python consumer",
    "aiokafka": "log of an aiokafka consumer",
}
"""The kinds of input."""

EVENT = _table(
    "silver/event",
    "What happened, one row each: the trace's lines with their types, and logs in the same words.",
    _TRACE,
    ("seq", LONG, "the order in the trace"),
    ("source", STRING, "one of SOURCES"),
    ("wall_us", LONG, "when, by the wall's clock"),
    ("group_us", LONG, "when, by the group's clock (`group_ts_us` of the trace); of logs the wall's"),
    ("kind", STRING, "request, response, state, member, timer, conn, …; of client logs `client`"),
    ("node", INT, "the broker"),
    ("conn_id", INT, "the connection; numbers are unique per node"),
    ("correlation_id", INT, "which request of its connection"),
    ("api", STRING, "the API, as Kafka's schemas name it: JoinGroup"),
    ("api_key", SHORT, "its number"),
    ("api_version", SHORT, "its version"),
    *_SOFTWARE,
    ("client_host", STRING, "where the client is"),
    _GROUP,
    ("member_id", STRING, "the member id in a request, or of whom the event tells"),
    ("instance_id", STRING, "its group.instance.id"),
    ("generation", INT, "the generation"),
    ("state_from", STRING, "the state a group leaves"),
    ("state_to", STRING, "the state it enters"),
    ("change", STRING, "what happened to a member, a connection, a node, a puppet, a rule or a hold"),
    ("cause", STRING, "why: one of the causes of rebalances, or of a member's going"),
    ("reason", STRING, "the same in Kafka's own words"),
    ("client_reason", STRING, "why a client says it joins or leaves (KIP-800)"),
    ("timer", STRING, "the timer that fired"),
    ("error_code", SHORT, "the code of a response, as on the wire"),
    ("error", STRING, "its name; null if all went well"),
    ("latency_us", LONG, "how long the response took, by the wall's clock"),
    ("rule_id", STRING, "the rule of the test that acted on it"),
    ("synthetic", BOOL, "an answer that Kafka would never give there"),
    ("empty_fetches", INT, "how many fetches without a record came before"),
    ("count", LONG, "of `dropped`: how many events are lost"),
    ("name", STRING, "of the verb, puppet or hold"),
    ("mode", STRING, "of `clock`: how the clock runs from then on"),
    ("body", STRING, "what else there is, as JSON: of joins, syncs, leaves, commits and fetches"),
    key="trace_id seq",
    partitions=("home", "batch"),
)

HEADER = _table(
    "silver/header",
    "The headers of traces, as they were read.",
    _TRACE,
    ("source", STRING, "one of SOURCES"),
    ("wall_us", LONG, "when the trace began, by the wall's clock"),
    ("schema_version", INT, "of the trace file"),
    ("run_id", STRING, "the run of a test suite"),
    ("test_id", STRING, "the test"),
    ("cluster", STRING, "the cluster's id"),
    ("seed", LONG, "of the emulator"),
    ("emulator_version", STRING, "its version"),
    ("python", STRING, "the Python it ran on"),
    ("os", STRING, "the system it ran on"),
    ("repo", STRING, "the repository"),
    ("commit", STRING, "its commit"),
    ("branch", STRING, "its branch"),
    ("ci_provider", STRING, "who ran it"),
    ("libs", MapType(STRING, STRING), "client libraries by name: their versions"),
    ("rerun", INT, "how many runs of the same test came before"),
    key="trace_id",
    partitions=("home", "batch"),
)

OUTCOME = _table(
    "silver/outcome",
    "The lines in which traces say how their test ended, as they were read.",
    _TRACE,
    ("test_id", STRING, "the test"),
    ("outcome", STRING, "passed, failed, error or skipped"),
    ("duration_ms", DOUBLE, "how long it took, by the wall's clock"),
    ("rerun", INT, "how many runs of the same test came before"),
    ("seed", LONG, "the seed that repeats it"),
    key="trace_id",
    partitions=("home", "batch"),
)

TRACE = _table(
    "silver/trace",
    "Every trace: its header, or what can be known without one.",
    _TRACE,
    _RUN,
    _TEST,
    _CLUSTER,
    ("source", STRING, "one of SOURCES"),
    ("schema_version", INT, "of the trace file"),
    ("seed", LONG, "of the emulator"),
    ("emulator_version", STRING, "its version"),
    ("python", STRING, "the Python it ran on"),
    ("os", STRING, "the system it ran on"),
    ("started_us", LONG, "when it began, by the wall's clock"),
    ("repo", STRING, "what was tested: the repository"),
    ("commit", STRING, "its commit"),
    ("branch", STRING, "its branch"),
    ("ci_provider", STRING, "who ran it"),
    ("libs", MapType(STRING, STRING), "client libraries in the process, by name: their versions"),
    ("rerun", INT, "how many runs of the same test came before"),
    ("n_events", LONG, "its events"),
    ("lost", LONG, "events that the emulator's memory had dropped"),
    key="trace_id",
)

RUN = _table(
    "silver/run",
    "Every run of a test suite.",
    _RUN,
    ("repo", STRING, "the repository"),
    ("commit", STRING, "the commit"),
    ("branch", STRING, "the branch"),
    ("ci_provider", STRING, "who ran it"),
    ("started_us", LONG, "when its first trace began"),
    ("os", STRING, "the system"),
    ("python", STRING, "the Python"),
    ("libs", MapType(STRING, STRING), "client libraries by name: their versions"),
    ("emulator_version", STRING, "the emulator's version"),
    ("schema_version", INT, "of its trace files"),
    ("n_tests", LONG, "its tests"),
    ("n_traces", LONG, "its traces"),
    ("n_events", LONG, "their events"),
    key="run_id",
    partitions=(),
)

TEST = _table(
    "silver/test",
    "Every run of a test that left a trace, and how it ended.",
    _TRACE,
    _RUN,
    _TEST,
    ("outcome", STRING, "passed, failed, error or skipped"),
    ("duration_ms", DOUBLE, "how long it took, by the wall's clock"),
    ("rerun", INT, "how many runs of the same test came before in this run of the suite"),
    ("seed", LONG, "the seed that repeats it"),
    key="trace_id",
)

MEMBER_SPAN = _table(
    "silver/member_span",
    "Every stay of a member in its group: from the JoinGroup that brought it, or when it was added, to its end.",
    _TRACE,
    _GROUP,
    ("member_id", STRING, "its member id"),
    _MEMBER,
    ("instance_id", STRING, "its group.instance.id"),
    ("membership", STRING, "static or dynamic"),
    ("puppet", BOOL, "whether it lives in the emulator"),
    *_SOFTWARE,
    ("joined_seq", LONG, "the event that brought it"),
    ("joined_us", LONG, "when, by the group's clock"),
    ("left_seq", LONG, "the event that ended it; null if it was there at the end"),
    ("left_us", LONG, "when"),
    ("end_reason", STRING, "the cause of its going: member_leave, session_expired, join_timeout, replaced, …"),
    ("session_timeout_ms", INT, "session.timeout.ms"),
    ("rebalance_timeout_ms", INT, "max.poll.interval.ms of a consumer (KIP-62)"),
    ("protocol_type", STRING, "consumer or connect"),
    ("protocols", STRINGS, "the assignors it offers, in its order"),
    ("topics", STRINGS, "what it subscribes to"),
    key="trace_id group_id member_id joined_seq",
)

ASSIGNMENT = _table(
    "silver/assignment",
    "What the leader of each generation assigned, as far as the coordinator took it over.",
    _TRACE,
    _GROUP,
    ("generation", INT, "the generation"),
    ("seq", LONG, "the leader's SyncGroup"),
    ("member_id", STRING, "to whom"),
    _MEMBER,
    ("topic", STRING, "the topic"),
    ("partition", INT, "the partition"),
    key="trace_id group_id generation topic partition member_id",
)

CALL = _table(
    "silver/call",
    "Every request that names a group, with its answer; what their bodies say has columns of its own.",
    _TRACE,
    _GROUP,
    ("seq", LONG, "the request"),
    ("wall_us", LONG, "when it came, by the wall's clock"),
    ("group_us", LONG, "when it came, by the group's clock"),
    ("answered_seq", LONG, "the answer; null if there is none"),
    ("answered_wall_us", LONG, "when it went, by the wall's clock"),
    ("answered_group_us", LONG, "when it went, by the group's clock"),
    ("node", INT, "the broker"),
    ("conn_id", INT, "the connection; numbers are unique per node"),
    ("api", STRING, "the API, as Kafka's schemas name it: JoinGroup"),
    ("api_version", SHORT, "its version"),
    *_SOFTWARE,
    ("asked_as", STRING, "the member id in the request; null if it has none"),
    ("member_id", STRING, "that, or else the one in the answer"),
    ("instance_id", STRING, "the group.instance.id in the request"),
    ("generation", INT, "the generation in the request"),
    ("formed", INT, "the generation that the answer to a JoinGroup names"),
    ("error", STRING, "the error of the answer, NONE if all went well; null if there is no answer"),
    ("error_code", SHORT, "its code, as on the wire"),
    ("rule_id", STRING, "the rule of the test that acted on it"),
    ("synthetic", BOOL, "an answer that Kafka would never give there"),
    ("session_timeout_ms", INT, "asked by JoinGroup"),
    ("rebalance_timeout_ms", INT, "likewise: max.poll.interval.ms of a consumer (KIP-62)"),
    ("protocol_type", STRING, "likewise: consumer or connect"),
    ("protocols", STRINGS, "likewise: the assignors it offers"),
    ("topics", STRINGS, "likewise: what it subscribes to"),
    ("owned", PARTITIONS, "likewise: what it says it still owns (KIP-429)"),
    ("assignments", MapType(STRING, PARTITIONS), "asked by the SyncGroup of a leader: what each member id is to have"),
    ("offsets", ArrayType(OFFSET), "asked by OffsetCommit"),
    ("protocol", STRING, "answered to JoinGroup: the assignor that was chosen"),
    ("leader", STRING, "likewise: the member id of the leader"),
    ("members", STRINGS, "likewise: all member ids, for the leader"),
    ("skip_assignment", BOOL, "likewise: the leader is to assign nothing (KIP-814)"),
    ("assignment", PARTITIONS, "answered to SyncGroup: what the member has"),
    key="trace_id seq",
)

MEMBER = _table(
    "silver/member",
    "Every member id that was seen in a group: whose it is, and where it asked.",
    _TRACE,
    _GROUP,
    ("member_id", STRING, "the member id"),
    _MEMBER,
    ("is_static", BOOL, "whether it has a group.instance.id"),
    *_SOFTWARE,
    ("first_seq", LONG, "its first request; null if it has asked nothing"),
    ("last_seq", LONG, "its last one"),
    ("node", INT, "the broker that one went to"),
    ("conn_id", INT, "its connection"),
    ("closed_seq", LONG, "where that connection was closed; null if it was not"),
    ("by_broker", BOOL, "whether the broker closed it"),
    ("formed_seq", LONG, "its first JoinGroup that brought it into a generation"),
    key="trace_id group_id member_id",
)

GROUP = _table(
    "silver/group",
    "Every group, and until when its trace tells of it.",
    _TRACE,
    _GROUP,
    ("end_seq", LONG, "the last event that knows the group's time"),
    ("end_wall_us", LONG, "when, by the wall's clock"),
    ("end_us", LONG, "when, by the group's clock"),
    ("lost", LONG, "events that the emulator's memory had dropped of the trace"),
    key="trace_id group_id",
)

ROUND = _table(
    "silver/round",
    "Every rebalance, as the changes of its group's state tell it: what gold/rebalance begins with.",
    _TRACE,
    _GROUP,
    _REBALANCE_NO,
    ("start_seq", LONG, "the event that began it"),
    ("start_wall_us", LONG, "when, by the wall's clock"),
    ("start_us", LONG, "when, by the group's clock"),
    ("gen_before", INT, "the generation before"),
    ("cause", STRING, "why it began"),
    ("reason", STRING, "Kafka's words"),
    ("client_reason", STRING, "the client's words"),
    ("trigger_member", STRING, "the member it began with"),
    ("join_seq", LONG, "the event that ended its join barrier"),
    ("over_us", LONG, "when the barrier fell, or the group was found empty"),
    ("gen_after", INT, "the generation it made; null if none"),
    ("told_members", INT, "how many members the event says there are; of logs"),
    ("told_static", INT, "how many of them are static; of logs"),
    ("late_member", STRING, "the first member that did not come before the barrier's time was up"),
    ("n_timed_out", INT, "how many such there were"),
    ("end_seq", LONG, "the event that ended it"),
    ("end_wall_us", LONG, "when, by the wall's clock"),
    ("end_us", LONG, "when, by the group's clock"),
    ("outcome", STRING, "completed, emptied, superseded, gone or open"),
    ("life", LONG, "how many rebalances of the group before had left it empty"),
    ("chain", LONG, "how many before had not been superseded: the same in those that superseded one another"),
    ("joined_before", LONG, "the event that ended the last join barrier before; 0 if there was none"),
    ("completed_before", INT, "the last one before that completed; null if the group was empty since"),
    ("completed_after", INT, "the next one that completes; null if the group is empty before"),
    key="trace_id group_id rebalance_no",
)

ARRIVAL = _table(
    "silver/arrival",
    "Every member id that joined in a rebalance and is in the generation it made.",
    _TRACE,
    _GROUP,
    _REBALANCE_NO,
    ("member_id", STRING, "its member id"),
    _MEMBER,
    ("instance_id", STRING, "its group.instance.id"),
    *_SOFTWARE,
    ("joined_seq", LONG, "its first JoinGroup for this generation"),
    ("joined_us", LONG, "when, by the group's clock"),
    ("last_joined_seq", LONG, "its last one, if it has asked again; else the same"),
    ("last_joined_us", LONG, "when, by the group's clock"),
    ("synced_us", LONG, "when its SyncGroup was first answered, whatever the answer"),
    ("protocol", STRING, "the assignor it was told of"),
    ("owns", BOOL, "whether it said that it still owned something (KIP-429)"),
    ("members", STRINGS, "the member ids it was told of, as the leader; else null"),
    key="trace_id group_id rebalance_no member_id",
)

MOVE = _table(
    "silver/move",
    "Every partition that a rebalance assigned, or left over. If two were given it, the first by name has it.",
    _TRACE,
    _GROUP,
    _REBALANCE_NO,
    ("topic", STRING, "the topic"),
    ("partition", INT, "the partition"),
    ("old_member", STRING, "who had it last, however long ago; null if nobody ever"),
    ("new_member", STRING, "who has it now; null if it was left over in this rebalance"),
    ("had", BOOL, "whether the old member had it until this rebalance"),
    ("is_life", BOOL, "whether the group has not been empty since the old member had it"),
    key="trace_id group_id rebalance_no topic partition",
)

REBALANCE = _table(
    "gold/rebalance",
    "Every rebalance: from PreparingRebalance to the state that ends it.",
    *_WHOSE,
    _REBALANCE_NO,
    ("start_seq", LONG, "the event that began it"),
    ("join_seq", LONG, "the event that ended its join barrier"),
    ("end_seq", LONG, "the event that ended it"),
    ("started_at", TIMESTAMP, "when it began, by the wall's clock"),
    ("gen_before", INT, "the generation before"),
    ("gen_after", INT, "the generation it made; null if none"),
    ("cause", STRING, "why it began: member_join, session_expired, …"),
    ("sub_cause", STRING, "the kind of the client's own reason (KIP-800)"),
    ("reason", STRING, "Kafka's words"),
    ("client_reason", STRING, "the client's words"),
    ("trigger_member", STRING, "the member it began with"),
    ("t_start_us", LONG, "when it began"),
    ("t_join_done_us", LONG, "when the join barrier fell"),
    ("t_sync_done_us", LONG, "when the assignment was there"),
    ("t_first_fetch_us", LONG, "when the first member fetched offsets or records after that"),
    ("join_ms", DOUBLE, "begin to barrier"),
    ("sync_ms", DOUBLE, "barrier to assignment"),
    ("total_ms", DOUBLE, "begin to end"),
    ("resume_ms", DOUBLE, "begin to first fetch"),
    ("members_before", INT, "members of the generation before; 0 if there was none"),
    ("members_after", INT, "members of the new generation"),
    ("n_joined", INT, "members that were not in the generation before"),
    ("n_left", INT, "members of the generation before that are not in this one"),
    ("n_static", INT, "static members of the new generation"),
    ("membership", STRING, "of the new generation: static, dynamic or mixed"),
    ("protocol", STRING, "the assignor that was chosen"),
    (
        "mode",
        STRING,
        "eager or cooperative: members keep what they own while they join again (KIP-429); null if unknown",
    ),
    ("straggler_member", STRING, "who joined last, or the first that did not come in time"),
    ("straggler_wait_ms", DOUBLE, "how long all others had been waiting for it by then"),
    ("straggler_share", DOUBLE, "its share of join_ms"),
    ("n_timed_out", INT, "members that did not come before the barrier's time was up"),
    ("partitions_total", INT, "partitions assigned"),
    ("partitions_moved", INT, "of those that had an owner before: now of another"),
    ("moves_minimum", INT, "the fewest that a balanced assignment to these members would have moved"),
    ("stickiness", DOUBLE, "moves_minimum / partitions_moved; 1.0 if none moved"),
    ("followup", BOOL, "a later round of a cooperative rebalance: its cause is that something was revoked"),
    ("storm_id", STRING, "the same in rebalances that follow one another within STORM_GAP_MS; null if it is alone"),
    ("outcome", STRING, "completed, emptied, superseded, gone or open"),
    key="trace_id group_id rebalance_no",
)

STORM_GAP_MS = 1_000
"""A rebalance that begins so soon after the end of the last belongs to the same storm."""

MEMBER_DOWNTIME = _table(
    "gold/member_downtime",
    "How long each member of a rebalance's new generation was stopped.",
    *_WHOSE,
    _REBALANCE_NO,
    ("member_id", STRING, "its member id"),
    _MEMBER,
    ("membership", STRING, "static or dynamic"),
    ("mode", STRING, "eager or cooperative"),
    *_SOFTWARE,
    ("stopped_ms", DOUBLE, "eager: from its JoinGroup to the answer of its SyncGroup; cooperative: 0 if it kept all"),
    ("waited_ms", DOUBLE, "from its JoinGroup to the answer of its SyncGroup, whatever it went on with meanwhile"),
    ("revoked_n", INT, "partitions it had before and has no longer"),
    ("assigned_n", INT, "partitions it has and had not before"),
    ("kept_n", INT, "partitions it had and has"),
    (
        "commit_before_revoke",
        BOOL,
        "it committed after the rebalance began and before it joined; null: nothing was revoked",
    ),
    key="trace_id group_id rebalance_no member_id",
)

PARTITION_GAP = _table(
    "gold/partition_gap",
    "Every partition that changed its owner: how long nobody had it, and what was done twice.",
    *_WHOSE,
    _REBALANCE_NO,
    ("topic", STRING, "the topic"),
    ("partition", INT, "the partition"),
    ("old_member", STRING, "who had it; null if nobody"),
    ("new_member", STRING, "who got it; null if nobody"),
    ("gap_ms", DOUBLE, "from the old owner's JoinGroup (or its end) to the answer of the new one's SyncGroup"),
    ("last_committed", LONG, "the old owner's last committed offset"),
    ("last_fetched", LONG, "the offset up to which it had fetched; null if the trace does not say"),
    ("redelivered_records", LONG, "last_fetched - last_committed, if that is known and positive; else 0 or null"),
    key="trace_id group_id rebalance_no topic partition",
)

STATE_TIME = _table(
    "gold/state_time",
    "How long each group was in each state.",
    *_WHOSE,
    ("state", STRING, "the state, as DescribeGroups names it"),
    ("ms", DOUBLE, "how long, from its first change of state to the last event of the trace that concerns it"),
    ("visits", LONG, "how often it was entered"),
    key="trace_id group_id state",
)

COMMIT = _table(
    "gold/commit",
    "Every OffsetCommit and what became of it.",
    *_WHOSE,
    ("seq", LONG, "the request"),
    ("at", TIMESTAMP, "when, by the wall's clock"),
    ("member_id", STRING, "its member id"),
    _MEMBER,
    *_SOFTWARE,
    ("generation", INT, "the generation it names"),
    ("group_generation", INT, "the group's generation then"),
    ("gen_lag", INT, "the difference; null for commits without a generation"),
    ("state_at", STRING, "the group's state then"),
    ("error_code", SHORT, "the first error; 0 if all went well; null: never answered"),
    ("error", STRING, "its name; NONE if all went well"),
    ("n_partitions", INT, "partitions it names"),
    ("is_zombie", BOOL, "it names an older generation than the group's"),
    key="trace_id seq",
)

FENCING = _table(
    "gold/fencing",
    "Every request that was refused with FENCED_INSTANCE_ID, and every replacement of a static member (KIP-345).",
    *_WHOSE,
    ("seq", LONG, "the answer, or the replacement"),
    ("at", TIMESTAMP, "when, by the wall's clock"),
    ("instance_id", STRING, "the group.instance.id"),
    ("old_member", STRING, "the member id that is fenced"),
    ("new_member", STRING, "the member id that has its place"),
    ("api", STRING, "the API in which it was told"),
    ("stage", STRING, "the group's state then"),
    key="trace_id seq",
)

HEARTBEAT = _table(
    "gold/heartbeat",
    "How regularly each member's heartbeats came: of all that name it, the gaps between neighbours.",
    *_WHOSE,
    ("member_id", STRING, "its member id"),
    _MEMBER,
    ("n", LONG, "heartbeats"),
    ("n_refused", LONG, "of them answered with an error"),
    ("p50_gap_ms", DOUBLE, "the median of the gaps"),
    ("p99_gap_ms", DOUBLE, "their 99th percentile, interpolated"),
    ("max_gap_ms", DOUBLE, "the greatest"),
    ("session_timeout_ms", INT, "its session timeout"),
    ("max_ratio_to_session", DOUBLE, "the greatest gap as a share of it"),
    key="trace_id group_id member_id",
)

AVOIDED = _table(
    "gold/avoided",
    "Every rebalance that did not happen: a static member came back in time (KIP-345).",
    *_WHOSE,
    ("seq", LONG, "the event"),
    ("at", TIMESTAMP, "when, by the wall's clock"),
    ("instance_id", STRING, "who came back"),
    ("generation", INT, "the generation it came back into"),
    key="trace_id seq",
)

CLIENT_JOIN = _table(
    "gold/client_join",
    "What logs of clients tell of rebalances: from (re-)joining to the assignment.",
    _TRACE,
    _RUN,
    ("source", STRING, "which client's log"),
    _GROUP,
    ("client_id", STRING, "what the client calls itself"),
    ("member_id", STRING, "its member id, if the log says so"),
    ("start_seq", LONG, "the line with which it began"),
    ("started_at", TIMESTAMP, "when"),
    ("generation", INT, "the generation it came into; null if it did not"),
    ("cause", STRING, "why, in the pipeline's words"),
    ("reason", STRING, "why, in the client's words"),
    ("join_ms", DOUBLE, "from joining to being in the generation"),
    ("total_ms", DOUBLE, "from joining to the assignment"),
    key="trace_id start_seq",
)

VERDICT = _table(
    "mart/verdict",
    "Every check of every group: S01 to S10 judge the coordinator, C01 to C10 its clients.",
    *_WHOSE,
    ("subject", STRING, "who is judged: `coordinator`, or a client library with its version; `clients` if several"),
    ("check_id", STRING, "S01 … C10"),
    ("title", STRING, "what it wants"),
    ("status", STRING, "pass, fail, inconclusive or not_applicable"),
    ("severity", STRING, "error: against the protocol; warning: against good manners"),
    ("n_evidence", INT, "how many times it was broken; of a pass, how many times it was looked at"),
    ("first_seq", LONG, "the first event of the evidence"),
    ("last_seq", LONG, "the last"),
    ("message", STRING, "what is wrong, or why nothing can be said"),
    key="trace_id group_id check_id",
)

CLIENT_MATRIX = _table(
    "mart/client_matrix",
    "Every client version in every scenario: did it keep to the protocol, and do its tests flake?",
    ("client_software", STRING, "the client library"),
    ("client_version", STRING, "its version"),
    ("scenario", STRING, "the test"),
    ("status", STRING, "the worst status of its client checks"),
    ("runs", LONG, "runs of the test with it"),
    ("failed", LONG, "of them failed"),
    ("flake_rate", DOUBLE, "the share of runs that ended otherwise than most; 0 if all are alike"),
    ("rebalances", DOUBLE, "rebalances per run"),
    ("last_run", TIMESTAMP, "when the last one began"),
    key="client_software client_version scenario",
    partitions=(),
)

FLAKY = _table(
    "mart/flaky",
    "Every test: how it ended, how often it rebalanced, and whether the one goes with the other.",
    _TEST,
    ("runs", LONG, "its runs"),
    ("failed", LONG, "of them failed"),
    ("flake_rate", DOUBLE, "the share of runs that ended otherwise than most"),
    ("rebalances_passed", DOUBLE, "rebalances per run that passed"),
    ("rebalances_failed", DOUBLE, "rebalances per run that failed"),
    ("rebalances", DOUBLE, "rebalances per run"),
    key="test_id",
    partitions=(),
)
