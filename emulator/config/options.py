"""The options of a cluster, each declared once for every interface that offers it.

A field of `Options` has the option's name, type and default; `_option` adds its help text, its range, the interfaces
that offer it, and the places where its name differs. `Emulator`, `koordinator serve`, the pytest plugin, HTTP's
`NewCluster` and the tables in docs follow from `OPTIONS`.
"""

# annotations are evaluated here: they are the types from which each interface builds its own options
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Flag, auto
from pathlib import Path
from typing import Any

from .profiles import PROFILES
from .seed_record import SeedRecord
from .settings import Settings, rules
from .suggest import did_you_mean
from .value_rules import INT_MAX

BROKERS_MAX = 100
"""The most brokers a cluster may start with."""

PORT_MAX = 65_535

PREFIX = "KOORDINATOR_"
"""Prefix of every environment variable."""


class Interface(Flag):
    """Interfaces that offer options."""

    EMULATOR = auto()
    SIMULATION = auto()
    SERVE = auto()
    PYTEST = auto()
    HTTP = auto()
    ALL = EMULATOR | SIMULATION | SERVE | PYTEST | HTTP
    SOCKETS = EMULATOR | SERVE | HTTP
    IN_PROCESS = EMULATOR | SIMULATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a cluster, or of a test run.

    `type` is the annotation of its value. `lowest` and `highest` bound integers, both included; `choices` are the
    allowed words. `unset` describes the effect of the default None. `singular` names one entry of a mapping on the
    command line (`--topic`), `serve_default` is the default of `koordinator serve` where it differs.
    """

    name: str
    type: Any = str
    default: Any = None
    help: str
    metavar: str = ""
    lowest: int = 0
    highest: int | None = None
    choices: tuple[str, ...] = ()
    interfaces: Interface = Interface.PYTEST
    unset: str = ""
    singular: str = ""
    serve_default: Any = None
    variable_name: str = ""

    @property
    def is_integer(self) -> bool:
        """Whether the value is an integer."""
        return self.type in {int, int | None}

    @property
    def is_list(self) -> bool:
        """Whether the value is a list, in text separated by commas."""
        return self.type in {Sequence[int], Sequence[str]}

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a mapping, of which the command line takes single entries."""
        return callable(self.default)

    @property
    def default_text(self) -> str:
        """The default, or its effect, as help texts show it; empty for no value."""
        return self.unset if self.default in (None, ()) or self.is_mapping else str(self.default)

    @property
    def flag(self) -> str:
        """The flag of `koordinator serve`."""
        return "--" + (self.singular or self.name).replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + (self.variable_name or self.singular or self.name).upper()

    @property
    def pytest_flag(self) -> str:
        """The flag of pytest."""
        return f"--{self.ini}".replace("_", "-")

    @property
    def ini(self) -> str:
        """The key in pytest's ini file."""
        return f"koordinator_{self.name}"

    @property
    def pytest_metavar(self) -> str:
        """The placeholder of the value in pytest's help."""
        return f"{{{','.join(self.choices)}}}" if self.choices else self.metavar

    def parse(self, text: str) -> int | str | tuple[int, ...] | tuple[str, ...]:
        """Return the value: an integer, a choice, a text, or several. Raises ValueError with the remedy."""
        if self.is_integer:
            return self._integer(text)
        if self.is_list:
            entries = text.split(",")
            return tuple(map(self._integer, entries)) if self.type == Sequence[int] else tuple(entries)
        if self.choices and text not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}{did_you_mean(text, self.choices)}")
        return text

    def _integer(self, text: str) -> int:
        try:
            number = int(text, 0)
        except ValueError:
            number = self.lowest - 1
        if number < self.lowest or (self.highest is not None and number > self.highest):
            upper = "" if self.highest is None else f" to {self.highest}"
            raise ValueError(f"must be an integer from {self.lowest}{upper}")
        return number


def _option(default: Any, help: str, *, is_secret: bool = False, **row: Any) -> Any:  # noqa: A002, ANN401 - as `field`
    """A field of `Options` with the rest of its row; a callable default makes a new value for each cluster."""
    metadata = {"row": {"help": help, "default": default, **row}}
    if callable(default):
        return field(default_factory=default, metadata=metadata, repr=not is_secret)
    return field(default=default, metadata=metadata, repr=not is_secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one cluster.

    `config` may also hold `profile`, `kafka.version`, `error.codes` and `group.clock`; None in their own fields
    means "not given here". A data directory that already holds a cluster keeps its topics: `topics` and `records`
    apply only to topics that it does not have.
    """

    host: str = _option(
        "127.0.0.1",
        "Address or name to listen on.",
        metavar="HOST",
        interfaces=Interface.EMULATOR | Interface.SERVE,
    )
    port: int = _option(
        0,
        "Port of the first broker; 0 picks a free port. The other brokers use the ports that follow.",
        metavar="N",
        highest=PORT_MAX,
        interfaces=Interface.SOCKETS,
        serve_default=9092,
    )
    brokers: int = _option(
        1, "Number of brokers.", metavar="N", lowest=1, highest=BROKERS_MAX, interfaces=Interface.ALL
    )
    broker_ids: Sequence[int] = _option(
        (),
        "Ids of the brokers, in the order of their ports.",
        metavar="ID,ID…",
        highest=INT_MAX,
        interfaces=Interface.ALL,
        unset="1 to the number of brokers",
    )
    racks: Sequence[str] = _option(
        (),
        "Racks of the brokers, in the order of their ports.",
        metavar="RACK,RACK…",
        interfaces=Interface.ALL,
        unset="none",
    )
    listeners: Mapping[str, str] = _option(
        dict,
        "Add listeners to every broker, or with 2:NAME to broker 2.",
        metavar="NAME=HOST:PORT",
        interfaces=Interface.SOCKETS,
        singular="listener",
    )
    advertised: Mapping[str, str] = _option(
        dict,
        "Advertise other addresses to the clients of a listener.",
        metavar="NAME=HOST:PORT",
        interfaces=Interface.SOCKETS,
    )
    security: str = _option(
        "plaintext",
        "Security protocol of the main listener. Beside another one, PLAINTEXT has a free port of 127.0.0.1.",
        choices=("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
        interfaces=Interface.SOCKETS | Interface.PYTEST,
    )
    users: Mapping[str, str] = _option(
        dict,
        "Users of listeners with SASL, with their passwords; alice with alice-secret if there are none.",
        is_secret=True,
        metavar="NAME=PASSWORD",
        interfaces=Interface.SOCKETS,
        singular="user",
    )
    certificates: str | Path | None = _option(  # noqa: RUF009 - a field
        None,
        "Directory of ca.pem, server.pem and client.pem for listeners with TLS; they are made if they are missing.",
        metavar="DIR",
        interfaces=Interface.EMULATOR | Interface.SERVE,
        unset="a temporary one",
    )
    topics: Mapping[str, int] = _option(
        dict,
        "Create topics.",
        metavar="NAME:PARTITIONS",
        interfaces=Interface.SOCKETS | Interface.SIMULATION,
        singular="topic",
    )
    records: Mapping[str, Sequence[SeedRecord]] = _option(
        dict,
        "Write the records of a file to their topics: one JSON object per line, of which only `topic` is required.",
        metavar="FILE",
        interfaces=Interface.SERVE,
    )
    config: Mapping[str, object] = _option(
        dict,
        "Set broker configs, such as group.max.size=10.",
        is_secret=True,
        metavar="NAME=VALUE",
        interfaces=Interface.SOCKETS | Interface.SIMULATION,
    )
    profile: str | None = _option(
        None,
        "Set of default broker configs.",
        choices=tuple(PROFILES),
        interfaces=Interface.ALL,
        unset="fast",
    )
    kafka_version: str | None = _option(
        None,
        "Kafka release to emulate: its API versions and its group coordinator.",
        choices=rules()["kafka.version"].choices,
        interfaces=Interface.ALL,
        unset=Settings().kafka_version,
    )
    error_codes: str | None = _option(
        None,
        "Numbers of the group errors: as Kafka released them, or as the KIPs print them.",
        choices=rules()["error.codes"].choices,
        interfaces=Interface.ALL,
        unset=Settings().error_codes,
    )
    clock: str | None = _option(
        None,
        "Clock of the groups.",
        choices=rules()["group.clock"].choices,
        interfaces=Interface.IN_PROCESS,
        unset=Settings().group_clock,
    )
    trace: str | Path | None = _option(  # noqa: RUF009 - a field
        None,
        "Write the trace to a file, as JSON lines; an existing file is overwritten.",
        metavar="FILE",
        interfaces=Interface.IN_PROCESS | Interface.SERVE,
        variable_name="trace_file",  # KOORDINATOR_TRACE belongs to the pytest plugin, and is not a file
    )
    data_dir: str | Path | None = _option(  # noqa: RUF009 - a field
        None,
        "Keep topics, records, groups and offsets in a directory, and restore them at the next start.",
        metavar="DIR",
        interfaces=Interface.EMULATOR | Interface.SERVE,
    )
    seed: int | None = _option(
        None, "Seed of every id the cluster creates.", metavar="N", interfaces=Interface.ALL, unset="random"
    )
    trace_header: Mapping[str, object] = _option(
        dict, "Columns to add to the header of the trace.", interfaces=Interface.IN_PROCESS
    )

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of the brokers, in the order of their ports. Raises ValueError for invalid ids, racks or numbers."""
        return self.checked_ids("brokers", "broker_ids", "racks")

    @property
    def rack_of(self) -> dict[int, str]:
        """The racks by broker, of those that have one. Raises the errors of `node_ids`."""
        return dict(zip(self.node_ids, self.racks, strict=False))

    def checked_ids(self, brokers: str, broker_ids: str, racks: str) -> tuple[int, ...]:
        """Return `node_ids`. Raises ValueError with these names of the options `brokers`, `broker_ids` and `racks`."""
        if not 1 <= self.brokers <= BROKERS_MAX:
            raise ValueError(f"{brokers} {self.brokers}: must be from 1 to {BROKERS_MAX}")
        n_brokers = self.brokers if self.brokers > 1 else max(1, len(self.racks))
        ids = tuple(self.broker_ids) or tuple(range(1, n_brokers + 1))
        if len(ids) > BROKERS_MAX or len(set(ids)) < len(ids) or not all(0 <= each <= INT_MAX for each in ids):
            raise ValueError(
                f"{broker_ids} {list(ids)}: must be at most {BROKERS_MAX} different integers from 0 to {INT_MAX}"
            )
        if self.brokers not in (1, len(ids)):
            raise ValueError(f"{brokers} {self.brokers}: {broker_ids} has {len(ids)} ids; leave {brokers} out")
        if self.racks and (len(self.racks) != len(ids) or not all(map(str.strip, self.racks))):
            raise ValueError(f"{racks} {list(self.racks)}: must be one name for each of the {len(ids)} brokers")
        return ids


OPTIONS = tuple(Option(name=row.name, type=row.type, **row.metadata["row"]) for row in fields(Options))
"""Every option of a cluster, in the order of the help texts."""


def options_of(interface: Interface) -> tuple[Option, ...]:
    """Return the options that an interface offers."""
    return tuple(option for option in OPTIONS if interface in option.interfaces)
