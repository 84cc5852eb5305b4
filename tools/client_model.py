"""A model of the control operations for the clients of other languages (`clients/`): handles, methods, objects.

Names and types are those of the OpenAPI document; the verbs are those of the Python handles. `client_node.py`,
`client_go.py` and `client_java.py` write it in their languages.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from koordinator.emulator.control.faults.actions import ACTIONS
from koordinator.emulator.control.faults.rules import Match, Trigger
from koordinator.emulator.http.openapi import document
from koordinator.emulator.http.routes import BELOW

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = "#/components/schemas/"
OFFSET = "Offset"
"""The object that stands for the row `[topic, partition, offset]`."""


@dataclass(frozen=True)
class Type:
    """The type of a value: a scalar, bytes, any, an offset, a list or map of `item`, or the object `name`."""

    kind: str
    item: Type | None = None
    name: str = ""
    is_nullable: bool = False
    options: tuple[Type, ...] = ()


@dataclass(frozen=True)
class Field:
    """An argument of a method, or a property of an object, by its name in JSON."""

    name: str
    type: Type
    is_required: bool
    doc: str = ""
    default: Any = None


@dataclass(frozen=True)
class Shape:
    """An object of the responses."""

    name: str
    doc: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Method:
    """A method of a handle.

    `kind` is call, wait (for a true result), check (of a result with `ok` and `message`), or create: it returns the
    handle `creates`, with the identity of its path.

    `fixed` are arguments with one value; `prelude` names the method that is called first if the argument of that name
    is given, `offset_rows` whether offsets are rows and not objects.
    """

    handle: str
    name: str
    verb: str
    path: str
    kind: str
    doc: str
    arguments: tuple[Field, ...]
    options: tuple[Field, ...]
    result: Type
    fixed: tuple[tuple[str, str], ...] = ()
    prelude: str = ""
    offset_rows: bool = True
    creates: str = ""

    @property
    def is_query(self) -> bool:
        """Whether the arguments are in the query."""
        return self.verb == "GET"


@dataclass(frozen=True)
class Handle:
    """A handle: its identity, which is in the paths of its methods, and its methods."""

    name: str
    doc: str
    identity: tuple[str, ...]
    is_extended: bool
    """Whether the library adds methods by hand."""
    methods: tuple[Method, ...]


@dataclass(frozen=True)
class Action:
    """The constructor of a rule's action."""

    kind: str
    doc: str
    arguments: tuple[Field, ...]
    options: tuple[Field, ...]


@dataclass(frozen=True)
class Verb:
    """How an operation becomes a method: its name, and what differs from the operation."""

    handle: str
    name: str
    operation: str
    kind: str = "call"
    doc: str = ""
    required: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    fixed: tuple[tuple[str, str], ...] = field(default=())
    prelude: str = ""
    creates: str = ""


HANDLES = {
    "Cluster": ("A running cluster.", (), True),
    "Topic": ("A topic of a cluster, which need not exist yet.", ("topic",), False),
    "Node": ("A broker of a cluster.", ("node",), False),
    "Group": ("A consumer group, which need not exist yet.", ("group",), True),
    "Puppet": ("A scripted member of a group, which lives in the emulator.", ("group", "name"), False),
    "Rule": ("A rule on requests.", ("rule",), False),
    "Hold": ("A hold, which parks requests.", ("hold",), True),
    "Producer": ("A scripted transactional producer.", ("name",), False),
    "Transaction": ("A transactional id, which need not exist yet.", ("transaction",), False),
}

ACCESSORS = ("Topic", "Node", "Transaction")
"""The handles that a cluster returns by name, whether they exist or not. A library adds `group` by hand."""

TIMEOUT = "timeout"

ADVANCE_BY = " by seconds, or by a text such as `7d`, `45s` or `250ms`"
"""The part of a description that does not apply where durations have a type."""

ADVANCE_DOC = (
    f"Advance the group's clock{ADVANCE_BY}; every timer due meanwhile fires, in order."
    " Connected members keep their sessions, except those named in `expire`; with `keep_alive`"
    " `none` no member does. Members are named by `group.instance.id`, client id or member id."
)

VERBS = (
    Verb("Cluster", "topics", "topics.describe", omitted=("topic",), doc="Return all topics."),
    Verb("Cluster", "group_ids", "groups.ids"),
    Verb("Cluster", "node_states", "nodes.states"),
    Verb("Cluster", "connections", "nodes.connections"),
    Verb("Cluster", "load_groups", "groups.load"),
    Verb("Cluster", "dump_groups", "groups.dump"),
    Verb("Cluster", "snapshot", "snapshots.take"),
    Verb("Cluster", "restore", "snapshots.restore"),
    Verb("Cluster", "reset", "snapshots.reset"),
    Verb("Cluster", "puppets", "puppets.list", omitted=("group",), doc="Return all puppets, in order of creation."),
    Verb("Cluster", "rules", "faults.rules"),
    Verb("Cluster", "unused_rules", "faults.unused"),
    Verb("Cluster", "add_jitter", "faults.add_jitter"),
    Verb("Cluster", "holds", "holds.all"),
    Verb("Cluster", "parked", "holds.parked"),
    Verb("Cluster", "producers", "producers.list"),
    Verb("Cluster", "transaction_ids", "transactions.ids"),
    Verb("Cluster", "set_group_max_size", "verbs.set_group_max_size"),
    Verb("Cluster", "acls", "acls.all"),
    Verb("Cluster", "allow", "acls.allow"),
    Verb("Cluster", "deny", "acls.deny"),
    Verb("Cluster", "revoke", "acls.revoke"),
    Verb("Cluster", "token", "credentials.token"),
    Verb("Cluster", "expire_authentication", "credentials.expire_authentication"),
    Verb("Cluster", "rotate_certificate", "credentials.rotate_certificate"),
    Verb("Cluster", "trace", "events.read", omitted=("format", "watch", TIMEOUT)),
    Verb("Cluster", "trace_position", "verify.position"),
    Verb(
        "Cluster",
        "assert_no_open_transactions",
        "transactions.none_open",
        "check",
        "Assert that no transaction is open.",
    ),
    Verb("Cluster", "transactions_conformance", "verify.transactions"),
    Verb("Cluster", "create_producer", "producers.create", "create", creates="Producer"),
    Verb("Topic", "create", "topics.create"),
    Verb("Topic", "produce", "topics.produce"),
    Verb("Topic", "records", "topics.records"),
    Verb("Topic", "add_partitions", "verbs.add_partitions"),
    Verb("Topic", "compact", "verbs.compact"),
    Verb("Topic", "expire_records", "verbs.expire_records"),
    Verb("Topic", "truncate", "verbs.truncate"),
    Verb("Topic", "leader", "nodes.leader"),
    Verb("Topic", "move_leader", "nodes.move_leader"),
    Verb("Topic", "set_markers", "transactions.set_markers"),
    Verb("Node", "address", "nodes.address"),
    Verb("Node", "stop", "nodes.stop"),
    Verb("Node", "kill", "nodes.kill"),
    Verb("Node", "start", "nodes.start"),
    Verb("Node", "pause", "nodes.pause"),
    Verb("Node", "resume", "nodes.resume"),
    Verb("Node", "remove", "nodes.remove"),
    Verb("Node", "advertise", "nodes.advertise"),
    Verb("Node", "misdirect", "nodes.misdirect"),
    Verb("Group", "describe", "groups.describe"),
    Verb(
        "Group",
        "wait_stable",
        "groups.meets",
        "wait",
        "Wait until the group is Stable and every member has its assignment. `members` also awaits that number of"
        " members; `all_owned` also awaits that exactly one member owns each partition of the subscribed topics;"
        " `after_generation` also awaits a later generation.",
        omitted=("state",),
        fixed=(("state", "Stable"),),
    ),
    Verb(
        "Group",
        "wait_state",
        "groups.meets",
        "wait",
        "Wait until the group is Empty, PreparingRebalance, CompletingRebalance, Stable or Dead; a consumer group"
        " (KIP-848) is Empty, Assigning, Reconciling or Stable.",
        required=("state",),
        omitted=("members", "all_owned", "after_generation"),
    ),
    Verb("Group", "silent_members", "groups.silent"),
    Verb("Group", "offsets", "groups.offsets"),
    Verb("Group", "pending_offsets", "groups.pending_offsets"),
    Verb("Group", "rebalances", "verify.rebalances"),
    Verb("Group", "coordinator", "nodes.coordinator"),
    Verb("Group", "move_coordinator", "nodes.move_coordinator"),
    Verb("Group", "clock", "clocks.read"),
    Verb("Group", "set_clock", "clocks.set_mode"),
    Verb("Group", "timers", "clocks.timers"),
    Verb("Group", "advance", "clocks.advance", doc=ADVANCE_DOC),
    Verb("Group", "awaited", "clocks.awaited"),
    Verb(
        "Group",
        "wait_awaited",
        "clocks.awaits_only",
        "wait",
        "Wait until the join phase, or the generation's SyncGroup, awaits no other members than these.",
    ),
    Verb(
        "Group",
        "wait_revoking",
        "clocks.revokes",
        "wait",
        "Wait until a member of a consumer group (KIP-848) is asked to give partitions up.",
    ),
    Verb("Group", "expire_session", "clocks.expire_session"),
    Verb("Group", "expire_join_phase", "clocks.expire_join_phase", prelude="wait_awaited"),
    Verb("Group", "expire_sync", "clocks.expire_sync", prelude="wait_awaited"),
    Verb("Group", "expire_revocation", "clocks.expire_revocation"),
    Verb("Group", "expire_pending", "clocks.expire_pending"),
    Verb("Group", "expire_offsets", "clocks.expire_offsets"),
    Verb("Group", "rebalance", "verbs.rebalance"),
    Verb("Group", "evict", "verbs.evict"),
    Verb("Group", "fence", "verbs.fence"),
    Verb("Group", "freeze", "verbs.freeze"),
    Verb("Group", "thaw", "verbs.thaw"),
    Verb("Group", "set_offsets", "verbs.set_offsets"),
    Verb("Group", "throttle", "faults.throttle"),
    Verb("Group", "share_positions", "shares.positions"),
    Verb("Group", "expire_locks", "shares.expire_locks"),
    Verb(
        "Group",
        "assert_assignment",
        "verify.assigned",
        "check",
        "Assert that the group has exactly these members, with exactly these partitions by topic. A member is named by"
        " its `group.instance.id`, its member id, or a client id that no other member has.",
    ),
    Verb(
        "Group",
        "assert_owned_exactly_once",
        "verify.owned",
        "check",
        "Assert that the group is Stable, and that exactly one member owns each partition of these topics; without"
        " `topics` of those that its members subscribe to.",
    ),
    Verb(
        "Group",
        "assert_committed",
        "verify.committed",
        "check",
        "Assert that these offsets are committed; more may be.",
    ),
    Verb(
        "Group",
        "assert_request",
        "verify.requests",
        "check",
        "Assert the number of matching requests: exactly `times`, or `at_least` (1 by default). `error` is the name or"
        " number of the response's error, `NONE` for success; `client_id` is a glob.",
    ),
    Verb("Group", "assert_left", "verify.left", "check", "Assert that a member left with LeaveGroup."),
    Verb("Group", "assert_did_not_leave", "verify.did_not_leave", "check", "Assert that no LeaveGroup named a member."),
    Verb(
        "Group",
        "assert_fenced",
        "verify.fenced",
        "check",
        "Assert that a static member received FENCED_INSTANCE_ID: another one replaced it (KIP-345).",
    ),
    Verb(
        "Group",
        "assert_no_zombie_commits",
        "verify.no_zombies",
        "check",
        "Assert that no commit had an old generation, came from a removed member, or was for another's partition.",
    ),
    Verb(
        "Group",
        "assert_rebalances",
        "verify.rebalanced_times",
        "check",
        "Assert the number of rebalances that began since the start of the cluster, or after `since` in the trace.",
    ),
    Verb(
        "Group",
        "assert_conformant",
        "verify.conforms",
        "check",
        "Assert that no client check C01 to C14 fails over the trace so far, except those in `ignore`.",
    ),
    Verb("Group", "create_puppet", "puppets.create", "create", creates="Puppet"),
    Verb("Puppet", "describe", "puppets.describe"),
    Verb("Puppet", "join", "puppets.join"),
    Verb("Puppet", "sync", "puppets.sync"),
    Verb("Puppet", "heartbeat", "puppets.heartbeat"),
    Verb("Puppet", "commit", "puppets.commit", doc="Commit offsets; `error` of the result is the response's error."),
    Verb("Puppet", "leave", "puppets.leave"),
    Verb("Puppet", "stop", "puppets.stop"),
    Verb("Puppet", "wait_state", "puppets.meets", "wait", "Wait until the puppet is in a state."),
    Verb("Rule", "describe", "faults.rule"),
    Verb("Rule", "remove", "faults.remove_rule", doc="Remove the rule and return it. Its earlier decisions stand."),
    Verb("Hold", "describe", "holds.look"),
    Verb("Hold", "near", "holds.near"),
    Verb("Hold", "remove", "holds.remove"),
    Verb("Hold", "release", "holds.release"),
    Verb("Producer", "describe", "producers.describe"),
    Verb("Producer", "wait", "producers.answered", "wait", "Wait until the producer awaits no response."),
    Verb("Producer", "init", "producers.init"),
    Verb("Producer", "produce", "producers.produce"),
    Verb("Producer", "send_offsets", "producers.send_offsets"),
    Verb("Producer", "commit", "producers.commit"),
    Verb("Producer", "abort", "producers.abort"),
    Verb("Producer", "stop", "producers.stop"),
    Verb("Transaction", "describe", "transactions.describe"),
    Verb("Transaction", "wait_state", "transactions.meets", "wait", "Wait until the transaction is in a state."),
    Verb("Transaction", "abort", "transactions.abort"),
    Verb("Transaction", "expire", "transactions.expire"),
)
"""The methods of the handles. Other operations are in the libraries, by hand: `BY_HAND`."""

BY_HAND = {
    "events.header": "in the trace file of a failed test",
    "faults.add_rule": "`add_rule`",
    "faults.rule": "`add_rule`",
    "holds.add": "`hold`",
    "holds.entered": "`wait_entered`",
    "holds.lockstep": "`lockstep`",
    "holds.round": "`wait_round`",
    "nodes.add": "`add_node`",
    "nodes.are_alone": "only of clusters with a data directory",
    "verify.not_rebalanced": "`assert_no_rebalance`",
    "verify.rebalanced": "`expect_rebalance`",
}
"""The operations that the libraries call in code of their own."""


RESULTS_BY_HAND = ("GroupCheck", "HoldEntry", "HoldInfo", "LockstepRound", "RebalanceCheck")
"""The results of operations that the libraries call in code of their own."""

OPAQUE = ("snapshots.take",)
"""The operations whose result is only passed on, to another operation."""


@cache
def operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Return method, path and description of each operation on a cluster."""
    found = {}
    for path, methods in document()["paths"].items():
        if path.startswith(f"{BELOW}/"):
            for verb, operation in methods.items():
                if verb != "parameters":
                    found[operation["operationId"]] = (verb.upper(), path.removeprefix(BELOW), operation)
    return found


def handles() -> list[Handle]:
    """Return all handles. Raises ValueError for an operation without a verb."""
    missing = operations().keys() - {verb.operation for verb in VERBS} - BY_HAND.keys()
    if missing:
        raise ValueError(f"tools/client_model.py: no verb for {', '.join(sorted(missing))}")
    return [
        Handle(name, doc, identity, extended, tuple(_method(verb, identity) for verb in VERBS if verb.handle == name))
        for name, (doc, identity, extended) in HANDLES.items()
    ]


def shapes() -> list[Shape]:
    """Return the objects of the responses."""
    found = {
        name: Shape(
            name,
            _plain(schema.get("description", "")),
            tuple(Field(each, type_of(of), is_required=True) for each, of in schema["properties"].items()),
        )
        for name, schema in document()["components"]["schemas"].items()
    }
    results = [method.result for handle in handles() for method in handle.methods]
    used: set[str] = set()
    waiting = [*{name for each in results for name in _names(each)}, *RESULTS_BY_HAND]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += [inner for each in found[name].fields for inner in _names(each.type)]
    return [found[name] for name in sorted(used)]


def _names(of: Type) -> list[str]:
    inner = [*of.options, *([of.item] if of.item else [])]
    return [*([of.name] if of.kind == "object" else []), *(name for each in inner for name in _names(each))]


def actions() -> list[Action]:
    """Return the constructors of actions."""
    found = []
    for kind, action in ACTIONS.items():
        every = [_of_class(action, each.name, each.default) for each in fields(action)]
        doc = _plain(action.__doc__ or "")
        required = tuple(each for each in every if each.is_required)
        found.append(Action(kind, doc, required, tuple(each for each in every if not each.is_required)))
    return found


def conditions() -> tuple[list[Field], list[Field]]:
    """Return the conditions of rules and holds besides their API, and the triggers of rules."""
    matches = [_of_class(Match, each.name, each.default) for each in fields(Match) if each.init and each.name != "api"]
    return matches, [_of_class(Trigger, each.name, each.default) for each in fields(Trigger)]


SCALARS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def _of_class(of: type, name: str, default: Any) -> Field:
    hint = str(of.__annotations__[name])
    is_required = default is MISSING
    pair = re.search(r"tuple\[(int|float), (?:int|float)\]", hint)
    names = re.findall(r"\b(str|int|float|bool)\b", hint)
    kinds = tuple(Type(SCALARS[each]) for each in dict.fromkeys(names))
    if pair:
        kind = Type("list", Type(SCALARS[pair[1]]))
    else:
        kind = kinds[0] if len(kinds) == 1 else Type("union", options=kinds)
    return Field(name, kind, is_required)


def _method(verb: Verb, identity: tuple[str, ...]) -> Method:
    method, path, operation = operations()[verb.operation]
    in_path = re.findall(r"{(\w+)}", path)
    arguments = [Field(name, _path_type(operation, name), is_required=True) for name in in_path if name not in identity]
    options = []
    for each in _fields(operation):
        if each.name in {*identity, *verb.omitted}:
            continue
        if each.is_required:
            arguments.append(each)
        elif each.name in verb.required:
            arguments.append(replace(each, type=replace(each.type, is_nullable=False)))
        elif each.name != TIMEOUT:
            options.append(each)
    content = operation["responses"].get("200", {}).get("content", {})
    result = type_of(content["application/json"]["schema"]) if content else Type("none")
    if verb.operation in OPAQUE:
        result = Type("map", Type("any"))
    if content and "204" in operation["responses"]:
        result = Type(result.kind, result.item, result.name, is_nullable=True)
    return Method(
        verb.handle,
        verb.name,
        method,
        path,
        verb.kind,
        verb.doc or _plain(operation["description"]),
        tuple(arguments),
        tuple(options),
        result,
        verb.fixed,
        verb.prelude,
        verb.operation != "verbs.set_offsets",
        verb.creates,
    )


def _path_type(operation: dict[str, Any], name: str) -> Type:
    (found,) = (each for each in operation["parameters"] if each["name"] == name and each["in"] == "path")
    return type_of(found["schema"])


def _fields(operation: dict[str, Any]) -> Iterator[Field]:
    for each in operation.get("parameters", []):
        if each["in"] == "query":
            yield _field(each["name"], each["schema"], is_required=each.get("required", False))
    body = operation.get("requestBody")
    schema = body["content"]["application/json"]["schema"] if body else {}
    for name, each in schema.get("properties", {}).items():
        yield _field(name, each, is_required=name in schema.get("required", []))


def _field(name: str, schema: dict[str, Any], *, is_required: bool) -> Field:
    kind = Type("list", Type("offset")) if name == "offsets" else type_of(schema)
    return Field(name, kind, is_required, schema.get("description", ""), schema.get("default"))


def type_of(schema: dict[str, Any]) -> Type:
    """Return the type of a JSON schema."""
    match schema:
        case {"$ref": str(reference)}:
            return Type("object", name=reference.removeprefix(REFERENCE))
        case {"anyOf": list(options)}:
            others = [type_of(option) for option in options if option != {"type": "null"}]
            is_nullable = len(others) < len(options)
            if len(others) == 1:
                return Type(others[0].kind, others[0].item, others[0].name, is_nullable, others[0].options)
            return Type("union", is_nullable=is_nullable, options=tuple(others))
        case {"prefixItems": list(items)}:
            return Type("tuple", options=tuple(map(type_of, items)))
        case {"type": "array"}:
            return Type("list", type_of(schema.get("items", {})))
        case {"type": "object", "properties": {"base64": _}}:
            return Type("bytes")
        case {"type": "object", "additionalProperties": dict(values)}:
            return Type("map", type_of(values))
        case {"type": "object"}:
            return Type("map", Type("any"))
        case {"type": str(kind)}:
            return Type(kind)
    return Type("any")


def _plain(text: str) -> str:
    """Return a docstring as one line, without its sentences about Python's exceptions."""
    line = " ".join(text.split())
    return re.sub(r" ?\bRaises? [^.]*(\.(?=\S)[^.]*)*\.", "", line).strip()


def camel(name: str) -> str:
    """Return `afterGeneration` for `after_generation`."""
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def pascal(name: str) -> str:
    """Return `AfterGeneration` for `after_generation`."""
    return "".join(each[:1].upper() + each[1:] for each in name.split("_"))


def with_names(text: str, name: Any) -> str:
    """Return a documentation text with the names in backticks as a language writes them."""
    return re.sub(r"`(\w+)`", lambda found: f"`{name(found[1])}`" if "_" in found[1] else found[0], text)


def third_person(text: str) -> str:
    """Return "returns the topics" for "Return the topics", as comments in Go begin."""
    first, _, rest = text.partition(" ")
    if not first.isalpha() or first.endswith("s"):
        return text
    verb = first[0].lower() + first[1:]
    ending = "es" if verb.endswith(("sh", "ch", "x")) else "s"
    return f"{f'{verb[:-1]}ies' if verb.endswith('ty') else verb + ending} {rest}"
