"""The broker settings that have an effect here, under Kafka's own names.

Each setting is a field of `Settings`. Its attribute is Kafka's name with underscores for dots; its metadata hold the
range Kafka accepts (`GroupCoordinatorConfig`, `SocketServerConfigs`, `ServerLogConfigs`, `ReplicationConfigs`,
`TransactionLogConfigs`) and one line of documentation. The docs are generated from this table.

Every other setting of a Kafka broker is accepted without effect, with one warning each, so that a broker's settings can
be reused as they are. Any other name raises `InvalidSetting`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from koordinator.wire.values import value

from .conflicts import check_conflicts
from .kafka_configs import BROKER, configs_of
from .kafka_settings import is_kafka_setting, kafka_settings
from .profiles import OLD_DEFAULTS, PROFILES
from .suggest import did_you_mean
from .value_rules import INT_MAX, LONG_MAX, SHOWN_MAX, InvalidSetting, ValueRule, attribute, setting, shown, shown_value

if TYPE_CHECKING:
    from collections.abc import Mapping

TOPIC_DEFAULTS = {
    "log.cleaner.delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleanup.policy",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "log.roll.hours",
    "log.roll.ms",
    "log.segment.bytes",
}
"""Further settings of brokers that have an effect: topics inherit configs from them."""

PARTITIONS_MAX = 10_000
"""The limit of partitions of one topic, as for one request to KRaft (`QuorumController.MAX_PARTITIONS_PER_BATCH`).
Kafka's settings allow more."""

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
"""The authorizers of Kafka, with KRaft and with ZooKeeper. They decide alike."""

OPTIONS_INSTEAD = {"broker.rack": "each broker has its own: give the option racks, or --racks"}
"""The remedies for configs of single brokers that an option gives to all."""

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
"""The selectors of Kafka."""

RELEASES = ("2.4", "2.8", "3.9", "4.0", "4.2", "4.3", "4.4")
"""The supported releases of Apache Kafka, newest last."""

NEW_COORDINATOR_CHOSEN_IN = "3.9"
"""The only release in which `group.coordinator.new.enable` matters: earlier ones have no new group coordinator, later
ones no old one."""

QUOTA_DEFAULTS = ("quota.producer.default", "quota.consumer.default")
WITH_QUOTA_DEFAULTS = ("2.4", "2.8")
"""The quotas of client ids that no quota limits, and the releases that have them."""


@value
class Settings:
    """The settings of all brokers of a cluster. The defaults are Kafka's own."""

    group_min_session_timeout_ms: int = setting(
        6_000, "The shortest session timeout of a member; a shorter one is refused with 26."
    )
    group_max_session_timeout_ms: int = setting(
        1_800_000, "The longest session timeout of a member; a longer one is refused with 26."
    )
    group_initial_rebalance_delay_ms: int = setting(
        3_000, "How long the first join phase of an empty group waits for more members (KIP-134)."
    )
    group_max_size: int = setting(INT_MAX, "The most members of a group; the next one is refused (KIP-389).", lowest=1)
    group_consumer_session_timeout_ms: int = setting(
        45_000, "The session timeout of members of a consumer group (KIP-848).", lowest=1
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        5_000, "The heartbeat interval that members of a consumer group are told (KIP-848).", lowest=1
    )
    group_consumer_min_session_timeout_ms: int = setting(
        45_000, "The shortest session timeout of a consumer group (KIP-848).", lowest=1
    )
    group_consumer_max_session_timeout_ms: int = setting(
        60_000, "The longest session timeout of a consumer group (KIP-848).", lowest=1
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        5_000, "The shortest heartbeat interval of a consumer group (KIP-848).", lowest=1
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        15_000, "The longest heartbeat interval of a consumer group (KIP-848).", lowest=1
    )
    group_consumer_max_size: int = setting(
        INT_MAX, "The most members of a consumer group; the next one is refused with 81 (KIP-848).", lowest=1
    )
    group_consumer_assignors: str = setting(
        "uniform,range",
        "The assignors of consumer groups; the first one is the default (KIP-848).",
        choices=("uniform,range", "range,uniform", "uniform", "range"),
    )
    group_consumer_assignment_interval_ms: int = setting(
        1_000, "The shortest time between two targets of a consumer group, since 4.3 (KIP-1263)."
    )
    group_consumer_min_assignment_interval_ms: int = setting(
        0, "The shortest assignment interval of a consumer group (KIP-1263)."
    )
    group_consumer_max_assignment_interval_ms: int = setting(
        15_000, "The longest assignment interval of a consumer group (KIP-1263)."
    )
    group_consumer_regex_refresh_interval_ms: int = setting(
        600_000, "The longest time until patterns of a consumer group are resolved again (KIP-848).", lowest=10_000
    )
    group_consumer_migration_policy: str = setting(
        "",
        "The conversions allowed between classic and consumer groups (KIP-848). Empty: both ways, in 3.9 none.",
        choices=("", "bidirectional", "upgrade", "downgrade", "disabled"),
    )
    group_coordinator_rebalance_protocols: str = setting(
        "",
        "The protocols of groups; without consumer, KIP-848 is off, without streams KIP-1071. Empty: those of Kafka.",
        choices=("", "classic", "classic,consumer", "classic,consumer,share", "classic,consumer,streams"),
    )
    group_share_session_timeout_ms: int = setting(
        45_000, "The session timeout of members of a share group (KIP-932).", lowest=1
    )
    group_share_min_session_timeout_ms: int = setting(
        45_000, "The shortest session timeout of a share group (KIP-932).", lowest=1
    )
    group_share_max_session_timeout_ms: int = setting(
        60_000, "The longest session timeout of a share group (KIP-932).", lowest=1
    )
    group_share_heartbeat_interval_ms: int = setting(
        5_000, "The heartbeat interval that members of a share group are told (KIP-932).", lowest=1
    )
    group_share_min_heartbeat_interval_ms: int = setting(
        5_000, "The shortest heartbeat interval of a share group (KIP-932).", lowest=1
    )
    group_share_max_heartbeat_interval_ms: int = setting(
        15_000, "The longest heartbeat interval of a share group (KIP-932).", lowest=1
    )
    group_share_max_size: int = setting(
        200, "The most members of a share group; the next one is refused with 81 (KIP-932).", lowest=1, highest=1_000
    )
    group_share_assignors: str = setting(
        "simple", "The assignor of share groups; there is one (KIP-932).", choices=("simple",)
    )
    group_share_assignment_interval_ms: int = setting(
        1_000, "The shortest time between two targets of a share group, since 4.3 (KIP-1263)."
    )
    group_share_min_assignment_interval_ms: int = setting(
        0, "The shortest assignment interval of a share group (KIP-1263)."
    )
    group_share_max_assignment_interval_ms: int = setting(
        15_000, "The longest assignment interval of a share group (KIP-1263)."
    )
    group_share_record_lock_duration_ms: int = setting(
        30_000,
        "How long a record is locked for the member of a share group that acquired it (KIP-932).",
        lowest=1_000,
        highest=3_600_000,
    )
    group_share_min_record_lock_duration_ms: int = setting(
        15_000, "The shortest lock of a record in a share group (KIP-932).", lowest=1_000, highest=30_000
    )
    group_share_max_record_lock_duration_ms: int = setting(
        60_000, "The longest lock of a record in a share group (KIP-932).", lowest=30_000, highest=3_600_000
    )
    group_share_delivery_count_limit: int = setting(
        5, "How often a record is delivered to a share group until it is archived (KIP-932).", lowest=2, highest=10
    )
    group_share_min_delivery_count_limit: int = setting(
        2, "The lowest limit of deliveries that a share group may have.", lowest=2, highest=5
    )
    group_share_max_delivery_count_limit: int = setting(
        10, "The highest limit of deliveries that a share group may have.", lowest=5, highest=25
    )
    group_share_partition_max_record_locks: int = setting(
        2_000,
        "The most records in flight of a partition and a share group: from its start offset to its end (KIP-932).",
        lowest=100,
        highest=10_000,
    )
    group_share_min_partition_max_record_locks: int = setting(
        100, "The lowest limit of records in flight that a share group may have.", lowest=100, highest=2_000
    )
    group_share_max_partition_max_record_locks: int = setting(
        4_000, "The highest limit of records in flight that a share group may have.", lowest=2_000, highest=10_000
    )
    group_share_max_share_sessions: int = setting(
        2_000, "The most share sessions of a broker; the next one is refused with 133 (KIP-932).", lowest=1
    )
    errors_deadletterqueue_auto_create_topics_enable: bool = setting(
        default=False, doc="Whether a missing topic for the dead letters of a share group is created (KIP-1191)."
    )
    errors_deadletterqueue_topic_name_prefix: str = setting(
        "dlq.", "The beginning that the names of topics for dead letters must have; empty for any name (KIP-1191)."
    )
    group_streams_session_timeout_ms: int = setting(
        45_000, "The session timeout of members of a streams group (KIP-1071).", lowest=1
    )
    group_streams_min_session_timeout_ms: int = setting(
        45_000, "The shortest session timeout of a streams group (KIP-1071).", lowest=1
    )
    group_streams_max_session_timeout_ms: int = setting(
        60_000, "The longest session timeout of a streams group (KIP-1071).", lowest=1
    )
    group_streams_heartbeat_interval_ms: int = setting(
        5_000, "The heartbeat interval that members of a streams group are told (KIP-1071).", lowest=1
    )
    group_streams_min_heartbeat_interval_ms: int = setting(
        5_000, "The shortest heartbeat interval of a streams group (KIP-1071).", lowest=1
    )
    group_streams_max_heartbeat_interval_ms: int = setting(
        15_000, "The longest heartbeat interval of a streams group (KIP-1071).", lowest=1
    )
    group_streams_max_size: int = setting(
        INT_MAX, "The most members of a streams group; the next one is refused with 81 (KIP-1071).", lowest=1
    )
    group_streams_num_standby_replicas: int = setting(
        0, "The standby tasks beside each active task with state in a streams group (KIP-1071)."
    )
    group_streams_max_standby_replicas: int = setting(
        2, "The most standby replicas that a streams group may have (KIP-1071)."
    )
    group_streams_initial_rebalance_delay_ms: int = setting(
        3_000, "How long an empty streams group waits for more members before it gets tasks (KIP-1071)."
    )
    group_streams_assignment_interval_ms: int = setting(
        1_000, "The shortest time between two targets of a streams group, since 4.3 (KIP-1263)."
    )
    group_streams_min_assignment_interval_ms: int = setting(
        0, "The shortest assignment interval of a streams group (KIP-1263)."
    )
    group_streams_max_assignment_interval_ms: int = setting(
        15_000, "The longest assignment interval of a streams group (KIP-1263)."
    )
    share_coordinator_state_topic_num_partitions: int = setting(
        50,
        "The number of partitions of __share_group_state, over which the share partitions of groups are spread.",
        lowest=1,
        highest=PARTITIONS_MAX,
    )
    share_coordinator_state_topic_replication_factor: int = setting(
        3,
        "The replication factor of __share_group_state, at most the number of brokers at its creation.",
        lowest=1,
        highest=2**15 - 1,
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = setting(
        500, "How many updates of a share partition are written until its next snapshot (KIP-932).", highest=500
    )
    offset_metadata_max_bytes: int = setting(4_096, "The longest metadata of a committed offset, in UTF-16 code units.")
    offsets_topic_num_partitions: int = setting(
        50,
        "The number of partitions of __consumer_offsets, over which groups are spread.",
        lowest=1,
        highest=PARTITIONS_MAX,
    )
    offsets_topic_replication_factor: int = setting(
        3,
        "The replication factor of __consumer_offsets, at most the number of brokers at its creation.",
        lowest=1,
        highest=2**15 - 1,
    )
    offsets_retention_minutes: int = setting(
        10_080, "How long the offsets of an empty group, or of a topic without subscribers, are kept.", lowest=1
    )
    offsets_retention_check_interval_ms: int = setting(
        600_000, "The interval between checks for expired offsets and groups.", lowest=1, highest=LONG_MAX
    )
    transaction_max_timeout_ms: int = setting(
        900_000, "The longest transaction timeout of a producer; a longer one is refused with 50.", lowest=1
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        10_000, "The interval between checks for timed-out transactions, which are aborted.", lowest=1
    )
    transactional_id_expiration_ms: int = setting(
        604_800_000, "How long a transactional id without an open transaction is kept.", lowest=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        3_600_000, "The interval between checks for expired transactional ids.", lowest=1
    )
    transaction_partition_verification_enable: bool = setting(
        default=True,
        doc="Whether records of a transaction are refused in partitions that were not added to it (KIP-890).",
    )
    transaction_state_log_num_partitions: int = setting(
        50,
        "The number of partitions of __transaction_state, over which transactional ids are spread.",
        lowest=1,
        highest=PARTITIONS_MAX,
    )
    transaction_state_log_replication_factor: int = setting(
        3,
        "The replication factor of __transaction_state, at most the number of brokers at its creation.",
        lowest=1,
        highest=2**15 - 1,
    )
    producer_id_expiration_ms: int = setting(
        86_400_000, "How long a partition knows a producer that writes nothing.", lowest=1
    )
    producer_id_expiration_check_interval_ms: int = setting(
        600_000, "The interval between checks for expired producers of partitions.", lowest=1
    )
    transaction_version: int = setting(
        2, "The level of the feature transaction.version; releases before 4.0 do not have it.", highest=2
    )
    num_partitions: int = setting(
        1,
        "The number of partitions of a topic that is created without one.",
        lowest=1,
        highest=PARTITIONS_MAX,
    )
    default_replication_factor: int = setting(
        1, "The replication factor of a topic that is created without one.", lowest=1, highest=2**15 - 1
    )
    auto_create_topics_enable: bool = setting(
        default=True, doc="Whether a metadata request may create an unknown topic."
    )
    delete_topic_enable: bool = setting(default=True, doc="Whether DeleteTopics is allowed.")
    message_max_bytes: int = setting(1_048_588, "The largest record batch in bytes; a larger one is refused with 10.")
    log_flush_interval_messages: int = setting(
        LONG_MAX,
        "With a data directory: a log is synced to disk when it has this many new records. By default a power cut may"
        " cost the last ones; the end of the process costs none.",
        lowest=1,
        highest=LONG_MAX,
    )
    log_retention_check_interval_ms: int = setting(
        300_000,
        "The interval between checks for records that `retention.ms` and `retention.bytes` of their topic delete.",
        lowest=1,
        highest=LONG_MAX,
    )
    log_initial_task_delay_ms: int = setting(
        30_000, "The time from the start of a broker to its first check of retention.", highest=LONG_MAX
    )
    log_cleaner_backoff_ms: int = setting(
        15_000, "The interval between runs of the cleaner, which compacts topics of users.", lowest=1, highest=LONG_MAX
    )
    fetch_max_bytes: int = setting(
        55 * 1024 * 1024, "The most bytes one Fetch returns, whatever the client's limit.", lowest=1_024
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        1_000, "The number of incremental fetch sessions (KIP-227)."
    )
    quota_window_num: int = setting(
        11, "The number of samples of which the rates of client quotas are taken.", lowest=1
    )
    quota_window_size_seconds: int = setting(1, "The time span of each sample for client quotas.", lowest=1)
    quota_producer_default: int = setting(
        LONG_MAX,
        "The bytes per second of each client id that no quota limits, of its Produce requests (releases 2.4 and 2.8).",
        lowest=1,
        highest=LONG_MAX,
    )
    quota_consumer_default: int = setting(
        LONG_MAX,
        "The bytes per second of each client id that no quota limits, of its fetches (releases 2.4 and 2.8).",
        lowest=1,
        highest=LONG_MAX,
    )
    request_thread_time_us: int = setting(
        100,
        "The time of a broker's thread that each request takes in microseconds, which the quota `request_percentage`"
        " limits. A real broker measures it.",
    )
    controller_quota_window_num: int = setting(
        11, "The number of windows whose controller mutations may come at once.", lowest=1
    )
    controller_quota_window_size_seconds: int = setting(
        1, "The time span of each window for quotas of controller mutations.", lowest=1
    )
    socket_request_max_bytes: int = setting(
        100 * 1024 * 1024, "The largest request in bytes; a larger one closes the connection.", lowest=1
    )
    listener_security_protocol_map: str = setting(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of listeners, `NAME:PROTOCOL,…`. A listener that is not named here has the protocol of"
        " its own name (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL), and any other is PLAINTEXT.",
    )
    sasl_enabled_mechanisms: str = setting(
        "GSSAPI", "The mechanisms of listeners with SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER."
    )
    connections_max_reauth_ms: int = setting(
        0,
        "How long a session of SASL lasts until the client has to authenticate again (KIP-368); 0: for ever.",
        highest=LONG_MAX,
    )
    connection_failed_authentication_delay_ms: int = setting(
        100, "How long a failed authentication waits for its response."
    )
    sasl_oauthbearer_jwks_endpoint_url: str = setting(
        "",
        "The keys that sign tokens of OAUTHBEARER (KIP-768): a `file:` URL of a JSON Web Key Set, or `generated` for a"
        " key made here. Without it tokens have no signature.",
    )
    sasl_oauthbearer_expected_audience: str = setting(
        "",
        "The audiences (`aud`) of signed tokens, separated by commas; without it a token of any is accepted since 4.4.",
    )
    sasl_oauthbearer_expected_issuer: str = setting("", "The issuer (`iss`) of signed tokens.")
    sasl_oauthbearer_scope_claim_name: str = setting("scope", "The claim of a signed token that has the scopes.")
    sasl_oauthbearer_sub_claim_name: str = setting("sub", "The claim of a signed token that has the user.")
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        30, "How much the times of a signed token may differ from the broker's."
    )
    delegation_token_secret_key: str = setting(
        "", "The secret of delegation tokens (KIP-48); without it there are no tokens.", is_secret=True
    )
    delegation_token_max_lifetime_ms: int = setting(
        604_800_000, "How long a delegation token can be renewed.", lowest=1, highest=LONG_MAX
    )
    delegation_token_expiry_time_ms: int = setting(
        86_400_000, "How long a delegation token is valid until it has to be renewed.", lowest=1, highest=LONG_MAX
    )
    delegation_token_expiry_check_interval_ms: int = setting(
        3_600_000, "How often expired delegation tokens are removed.", lowest=1, highest=LONG_MAX
    )
    ssl_client_auth: str = setting(
        "none", "Whether clients of listeners with TLS need a certificate.", choices=("none", "requested", "required")
    )
    ssl_principal_mapping_rules: str = setting(
        "DEFAULT",
        "How the subject of a client's certificate becomes its name: `RULE:pattern/replacement/`, `DEFAULT` (KIP-371).",
    )
    authorizer_class_name: str = setting(
        "",
        "The authorizer of requests: none, or Kafka's own, which decides by the ACLs of the cluster.",
        choices=("", STANDARD_AUTHORIZER, ACL_AUTHORIZER),
    )
    replica_selector_class: str = setting(
        "",
        "Which replica a consumer is told to fetch from: the leader, or with Kafka's `RackAwareReplicaSelector` one in"
        " the rack of its `client.rack` (KIP-392).",
        choices=("", LEADER_SELECTOR, RACK_AWARE_SELECTOR),
    )
    super_users: str = setting("", "The principals that may do everything, `User:admin;User:ANONYMOUS`.")
    allow_everyone_if_no_acl_found: bool = setting(
        default=False, doc="Whether all clients may use resources that no ACL names."
    )
    group_coordinator_new_enable: bool = setting(
        default=False,
        doc="Whether a broker of release 3.9 runs the new group coordinator; older releases never do, newer always.",
    )
    kafka_version: str = setting(
        RELEASES[-1],
        "The emulated release of Apache Kafka: its API versions and the behaviour of its group coordinator.",
        choices=RELEASES,
    )
    error_codes: Literal["kafka", "kip"] = cast(
        "Literal['kafka', 'kip']",
        setting(
            "kafka",
            "Error numbers of the group APIs: kafka, as released (79, 81, 82), or kip, as in the KIPs (79, 77, 78).",
            choices=("kafka", "kip"),
        ),
    )

    coordinator_found_at_once: bool = setting(
        default=False,
        doc="Whether a FindCoordinator that creates its topic returns the coordinator, and not 15 as in Kafka.",
    )
    log_retention_by_default: bool = setting(
        default=True,
        doc="Whether records expire after seven days where neither `retention.ms` nor `log.retention.*` is set.",
    )
    group_clock: Literal["real", "manual", "auto"] = cast(
        "Literal['real', 'manual', 'auto']",
        setting(
            "real",
            "The clock of each group: real, manual (stands still until moved) or auto (skips waiting times).",
            choices=("real", "manual", "auto"),
        ),
    )

    further: tuple[tuple[str, str], ...] = ()
    """Further settings of a broker, as they were given: DescribeConfigs shows them."""

    given: frozenset[str] = frozenset()
    """The names of the other settings that were given, of which some have their defaults: DescribeConfigs tells."""

    @classmethod
    def of(cls, profile: str | None = None, values: Mapping[str, object] | None = None) -> tuple[Self, list[str]]:
        """Return the settings of a profile with some values replaced, and warnings to show once.

        `values` maps Kafka's names to text or Python values. It may contain `profile`, unless that is given as an
        argument; the default is "fast". Raises `InvalidSetting`.
        """
        given = dict(values or {})
        chosen = given.pop("profile", "fast" if profile is None else profile)
        if profile is not None and profile != chosen:
            raise InvalidSetting(f"profile: given twice, as {profile!r} and as {chosen!r}")
        if not isinstance(chosen, str) or chosen not in PROFILES:
            raise InvalidSetting(f"profile={shown(chosen)}: must be {' or '.join(PROFILES)}")
        known, warnings = rules(), list[str]()
        parsed: dict[str, Any] = OLD_DEFAULTS.get(str(given.get("kafka.version")), {}) | PROFILES[chosen]
        further: dict[str, str] = {}
        for name, given_value in given.items():
            if name in known:
                rule = known[name]
                result = rule.parse(given_value)
                if result is None:
                    raise InvalidSetting(f"{shown(name)}={shown_value(name, given_value)}: must be {rule.allowed}")
                parsed[attribute(name)] = result
            elif is_kafka_setting(name):
                further[name] = str(given_value)
            else:
                what = f"{shown(name)}={shown_value(name, given_value)}"
                raise InvalidSetting(f"{what}: not a setting of a Kafka broker{_nearest(name)}")
        settings = replace(
            cls(), **parsed, further=tuple(further.items()), given=frozenset(given.keys() & known.keys())
        )
        check_conflicts(settings)
        for name, text in further.items():
            key = configs_of(BROKER, settings.kafka_version).get(name) if name in TOPIC_DEFAULTS else None
            if key is None:
                remedy = OPTIONS_INSTEAD.get(name)
                warnings.append(f"{shown(name)}: accepted, no effect here{f' ({remedy})' if remedy else ''}")
            elif (problem := key.problem(text)) is not None:
                raise InvalidSetting(problem)
        if "group.coordinator.new.enable" in given and settings.kafka_version != NEW_COORDINATOR_CHOSEN_IN:
            reason = f"release {settings.kafka_version} has only one coordinator"
            warnings.append(f"group.coordinator.new.enable: accepted, no effect here ({reason})")
        if settings.kafka_version not in WITH_QUOTA_DEFAULTS:
            removed = f"accepted, no effect here (release {settings.kafka_version} does not have it)"
            warnings += [f"{name}: {removed}" for name in QUOTA_DEFAULTS if name in given]
        return settings, warnings

    def with_dynamic(self, configs: Mapping[str, str]) -> Settings:
        """Return these settings with values that a client has set for all brokers."""
        known = rules()
        parsed: dict[str, Any] = {
            attribute(name): known[name].parse(text) for name, text in configs.items() if name in known
        }
        return replace(self, **parsed)

    def for_brokers(self, count: int) -> tuple[Settings, list[str]]:
        """Return these settings adapted to a cluster of `count` brokers, and warnings for what was adapted."""
        replicas = self.default_replication_factor
        if replicas <= count:
            return self, []
        warning = f"default.replication.factor={replicas}: lowered to {count}, the number of brokers"
        return replace(self, default_replication_factor=count), [warning]


def rules() -> dict[str, ValueRule]:
    """Return the rule of each setting that has an effect, by Kafka's name."""
    return {row.name.replace("_", "."): row.metadata["rule"] for row in fields(Settings) if row.metadata}


def _nearest(name: str) -> str:
    names = sorted({*rules(), "profile", *kafka_settings()})
    if len(name) > SHOWN_MAX:
        return ""
    return did_you_mean(name, names)
