"""The table of settings: names, allowed values, and error messages."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.config.kafka_configs import broker_config_names
from koordinator.emulator.config.kafka_settings import INTERNAL, PREFIXES
from koordinator.emulator.config.profiles import PROFILES
from koordinator.emulator.config.settings import TOPIC_DEFAULTS, Settings, rules
from koordinator.emulator.config.value_rules import INT_MAX, InvalidSetting, attribute


def test_the_defaults_are_those_of_kafka() -> None:
    settings, warnings = Settings.of("kafka-defaults")
    assert settings == Settings()
    assert warnings == []
    assert {name: getattr(settings, attribute(name)) for name in rules()} == {
        "quota.producer.default": 2**63 - 1,
        "quota.consumer.default": 2**63 - 1,
        "ssl.principal.mapping.rules": "DEFAULT",
        "authorizer.class.name": "",
        "super.users": "",
        "replica.selector.class": "",
        "allow.everyone.if.no.acl.found": False,
        "group.min.session.timeout.ms": 6000,
        "group.max.session.timeout.ms": 1800000,
        "group.initial.rebalance.delay.ms": 3000,
        "group.max.size": 2147483647,
        "group.consumer.session.timeout.ms": 45000,
        "group.consumer.heartbeat.interval.ms": 5000,
        "group.consumer.min.session.timeout.ms": 45000,
        "group.consumer.max.session.timeout.ms": 60000,
        "group.consumer.min.heartbeat.interval.ms": 5000,
        "group.consumer.max.heartbeat.interval.ms": 15000,
        "group.consumer.max.size": 2147483647,
        "group.consumer.assignors": "uniform,range",
        "group.consumer.assignment.interval.ms": 1000,
        "group.consumer.min.assignment.interval.ms": 0,
        "group.consumer.max.assignment.interval.ms": 15000,
        "group.consumer.regex.refresh.interval.ms": 600000,
        "group.consumer.migration.policy": "",
        "group.coordinator.rebalance.protocols": "",
        "group.share.session.timeout.ms": 45000,
        "group.share.min.session.timeout.ms": 45000,
        "group.share.max.session.timeout.ms": 60000,
        "group.share.heartbeat.interval.ms": 5000,
        "group.share.min.heartbeat.interval.ms": 5000,
        "group.share.max.heartbeat.interval.ms": 15000,
        "group.share.max.size": 200,
        "group.share.assignors": "simple",
        "group.share.assignment.interval.ms": 1000,
        "group.share.min.assignment.interval.ms": 0,
        "group.share.max.assignment.interval.ms": 15000,
        "group.share.record.lock.duration.ms": 30000,
        "group.share.min.record.lock.duration.ms": 15000,
        "group.share.max.record.lock.duration.ms": 60000,
        "group.share.delivery.count.limit": 5,
        "group.share.min.delivery.count.limit": 2,
        "group.share.max.delivery.count.limit": 10,
        "group.share.partition.max.record.locks": 2000,
        "group.share.min.partition.max.record.locks": 100,
        "group.share.max.partition.max.record.locks": 4000,
        "group.share.max.share.sessions": 2000,
        "errors.deadletterqueue.auto.create.topics.enable": False,
        "errors.deadletterqueue.topic.name.prefix": "dlq.",
        "group.streams.session.timeout.ms": 45000,
        "group.streams.min.session.timeout.ms": 45000,
        "group.streams.max.session.timeout.ms": 60000,
        "group.streams.heartbeat.interval.ms": 5000,
        "group.streams.min.heartbeat.interval.ms": 5000,
        "group.streams.max.heartbeat.interval.ms": 15000,
        "group.streams.max.size": 2147483647,
        "group.streams.num.standby.replicas": 0,
        "group.streams.max.standby.replicas": 2,
        "group.streams.initial.rebalance.delay.ms": 3000,
        "group.streams.assignment.interval.ms": 1000,
        "group.streams.min.assignment.interval.ms": 0,
        "group.streams.max.assignment.interval.ms": 15000,
        "share.coordinator.state.topic.num.partitions": 50,
        "share.coordinator.state.topic.replication.factor": 3,
        "share.coordinator.snapshot.update.records.per.snapshot": 500,
        "offset.metadata.max.bytes": 4096,
        "offsets.topic.num.partitions": 50,
        "offsets.topic.replication.factor": 3,
        "offsets.retention.minutes": 10080,
        "offsets.retention.check.interval.ms": 600000,
        "transaction.max.timeout.ms": 900000,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 10000,
        "transactional.id.expiration.ms": 604800000,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 3600000,
        "transaction.state.log.num.partitions": 50,
        "transaction.state.log.replication.factor": 3,
        "transaction.version": 2,
        "producer.id.expiration.ms": 86400000,
        "producer.id.expiration.check.interval.ms": 600000,
        "transaction.partition.verification.enable": True,
        "num.partitions": 1,
        "default.replication.factor": 1,
        "auto.create.topics.enable": True,
        "delete.topic.enable": True,
        "message.max.bytes": 1048588,
        "log.flush.interval.messages": 2**63 - 1,
        "log.retention.check.interval.ms": 300_000,
        "log.initial.task.delay.ms": 30_000,
        "log.cleaner.backoff.ms": 15_000,
        "fetch.max.bytes": 57671680,
        "max.incremental.fetch.session.cache.slots": 1000,
        "quota.window.num": 11,
        "quota.window.size.seconds": 1,
        "request.thread.time.us": 100,
        "controller.quota.window.num": 11,
        "controller.quota.window.size.seconds": 1,
        "socket.request.max.bytes": 104857600,
        "group.coordinator.new.enable": False,
        "kafka.version": "4.4",
        "error.codes": "kafka",
        "coordinator.found.at.once": False,
        "log.retention.by.default": True,
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "connections.max.reauth.ms": 0,
        "connection.failed.authentication.delay.ms": 100,
        "sasl.oauthbearer.jwks.endpoint.url": "",
        "sasl.oauthbearer.expected.audience": "",
        "sasl.oauthbearer.expected.issuer": "",
        "sasl.oauthbearer.scope.claim.name": "scope",
        "sasl.oauthbearer.sub.claim.name": "sub",
        "sasl.oauthbearer.clock.skew.seconds": 30,
        "delegation.token.secret.key": "",
        "delegation.token.max.lifetime.ms": 604800000,
        "delegation.token.expiry.time.ms": 86400000,
        "delegation.token.expiry.check.interval.ms": 3600000,
        "ssl.client.auth": "none",
        "group.clock": "real",
    }


def test_the_fast_profile_is_the_default_and_differs_only_in_what_time_does() -> None:
    fast, _ = Settings.of()
    assert fast == dataclasses.replace(
        Settings(),
        group_initial_rebalance_delay_ms=0,
        group_min_session_timeout_ms=1,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=100,
        group_consumer_min_session_timeout_ms=1,
        group_consumer_min_heartbeat_interval_ms=1,
        group_consumer_heartbeat_interval_ms=500,
        group_consumer_assignment_interval_ms=0,
        group_share_min_session_timeout_ms=1,
        group_share_min_heartbeat_interval_ms=1,
        group_share_heartbeat_interval_ms=500,
        group_share_assignment_interval_ms=0,
        group_share_min_record_lock_duration_ms=1_000,
        group_streams_min_session_timeout_ms=1,
        group_streams_min_heartbeat_interval_ms=1,
        group_streams_heartbeat_interval_ms=500,
        group_streams_initial_rebalance_delay_ms=0,
        group_streams_assignment_interval_ms=0,
        coordinator_found_at_once=True,
        log_retention_by_default=False,
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        connection_failed_authentication_delay_ms=0,
    )
    assert Settings.of("fast")[0] == fast


def test_a_value_wins_over_the_profile() -> None:
    settings, _ = Settings.of("fast", {"group.initial.rebalance.delay.ms": 250})
    assert settings.group_initial_rebalance_delay_ms == 250


def test_every_row_of_the_table_is_documented_and_its_default_is_allowed() -> None:
    for name, rule in rules().items():
        default = getattr(Settings(), attribute(name))
        assert rule.doc.endswith("."), name
        assert rule.parse(default) == default, name
        assert rule.parse(str(default)) == default, name
        assert type(default) is rule.type, name


def test_every_profile_overrides_existing_settings_only() -> None:
    for name in PROFILES:
        assert Settings.of(name)[1] == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("group.max.size", "1", 1),
        ("group.max.size", 1, 1),
        ("group.max.size", " +7 ", 7),
        ("group.max.size", str(INT_MAX), INT_MAX),
        ("group.initial.rebalance.delay.ms", "0", 0),
        ("auto.create.topics.enable", "False", False),
        ("auto.create.topics.enable", "TRUE", True),
        ("auto.create.topics.enable", False, False),
        ("error.codes", "kip", "kip"),
        ("kafka.version", "2.8", "2.8"),
        ("kafka.version", 4.0, "4.0"),
    ],
)
def test_a_value_may_be_text_or_a_python_value(name: str, value: object, expected: object) -> None:
    settings, warnings = Settings.of("fast", {name: value})
    assert getattr(settings, attribute(name)) == expected
    assert type(getattr(settings, attribute(name))) is type(expected)
    assert warnings == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.max.size", "0"),
        ("group.max.size", 0),
        ("group.max.size", str(INT_MAX + 1)),
        ("group.max.size", "9" * 10_000),
        ("group.max.size", "1.0"),
        ("group.max.size", 1.0),
        ("group.max.size", "1_000"),
        ("group.max.size", "\u0661"),
        ("group.max.size", ""),
        ("group.max.size", "many"),
        ("group.max.size", True),
        ("group.max.size", None),
        ("group.initial.rebalance.delay.ms", "-1"),
        ("auto.create.topics.enable", "yes"),
        ("auto.create.topics.enable", 1),
        ("auto.create.topics.enable", ""),
        ("error.codes", "KIP"),
        ("error.codes", 79),
        ("kafka.version", "3.0"),
        ("kafka.version", 4),
        ("kafka.version", "4.3.1"),
    ],
)
def test_an_impossible_value_is_refused_with_name_value_and_range(name: str, value: object) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Settings.of("fast", {name: value})
    shown = str(value) if len(str(value)) <= 80 else f"{str(value)[:80]}..."
    assert str(refusal.value) == f"{name}={shown}: must be {rules()[name].allowed}"


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("group.max.size", "an integer from 1 to 2147483647"),
        ("auto.create.topics.enable", "true or false"),
        ("error.codes", "kafka or kip"),
        ("kafka.version", "2.4 or 2.8 or 3.9 or 4.0 or 4.2 or 4.3 or 4.4"),
    ],
)
def test_the_allowed_range_is_spelled_out(name: str, allowed: str) -> None:
    assert rules()[name].allowed == allowed


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("group.max.siz", "group.max.size"),
        ("group_max_size", "group.max.size"),
        ("GROUP.MAX.SIZE", "group.max.size"),
        ("log.retention.hour", "log.retention.hours"),
        ("profil", "profile"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Settings.of("fast", {name: "3"})
    assert str(refusal.value) == f"{name}=3: not a setting of a Kafka broker; did you mean {nearest!r}?"


@pytest.mark.parametrize("name", ["", "xyzzy", "\n", "group.max.size" * 1000])
def test_a_name_near_nothing_is_refused_without_a_proposal(name: str) -> None:
    with pytest.raises(InvalidSetting, match=r"not a setting of a Kafka broker$"):
        Settings.of("fast", {name: "3"})


@pytest.mark.parametrize(
    "name",
    ["log.dirs", "zookeeper.connect", "group.streams.assignors", "listener.name.internal.ssl.key.password"],
)
def test_a_setting_without_effect_is_accepted_with_one_warning_naming_it(name: str) -> None:
    settings, warnings = Settings.of("kafka-defaults", {name: "whatever"})
    assert settings == Settings(further=((name, "whatever"),))
    assert warnings == [f"{name}: accepted, no effect here"]


def test_the_warning_about_the_rack_of_one_broker_names_the_option_for_all() -> None:
    _, warnings = Settings.of("kafka-defaults", {"broker.rack": "a"})
    (warning,) = warnings
    assert warning.startswith("broker.rack: accepted, no effect here (each broker has its own: give the option racks")


@pytest.mark.parametrize("name", sorted(TOPIC_DEFAULTS))
def test_a_default_of_topics_is_checked_and_has_an_effect(name: str) -> None:
    values = {"log.cleanup.policy": "compact", "log.message.timestamp.type": "LogAppendTime", "log.segment.bytes": "14"}
    settings, warnings = Settings.of(values={"kafka.version": "3.9", name: values.get(name, "1")})
    assert (dict(settings.further), warnings) == ({name: values.get(name, "1")}, [])
    with pytest.raises(InvalidSetting, match=rf"Invalid value soon for configuration {re.escape(name)}: "):
        Settings.of(values={name: "soon"})


def test_a_server_properties_file_can_be_reused() -> None:
    """The settings of the file that Kafka ships (`config/server.properties` of 4.0), verbatim."""
    shipped = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "num.network.threads": "3",
        "num.io.threads": "8",
        "socket.send.buffer.bytes": "102400",
        "socket.receive.buffer.bytes": "102400",
        "socket.request.max.bytes": "104857600",
        "log.dirs": "/var/lib/kafka",
        "num.partitions": "1",
        "num.recovery.threads.per.data.dir": "1",
        "offsets.topic.replication.factor": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "log.retention.hours": "168",
        "log.segment.bytes": "1073741824",
        "log.retention.check.interval.ms": "300000",
        "default.replication.factor": "1",
    }
    _, warnings = Settings.of("kafka-defaults", shipped)
    with_effect = {
        "log.retention.check.interval.ms",
        "log.retention.hours",
        "log.segment.bytes",
        "listener.security.protocol.map",
        "socket.request.max.bytes",
        "num.partitions",
        "default.replication.factor",
        "offsets.topic.replication.factor",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.replication.factor",
    }
    assert sorted(warnings) == [f"{name}: accepted, no effect here" for name in sorted(shipped.keys() - with_effect)]


def test_more_replicas_than_there_are_brokers_are_accepted_with_a_warning() -> None:
    given, _ = Settings.of("fast", {"default.replication.factor": "3"})
    assert given.for_brokers(3) == (given, [])
    settings, warnings = given.for_brokers(2)
    assert settings.default_replication_factor == 2
    assert warnings == ["default.replication.factor=3: lowered to 2, the number of brokers"]


@pytest.mark.parametrize("release", ["2.4", "2.8", "4.0", "4.2", "4.3", "4.4"])
def test_only_one_release_has_a_choice_of_coordinators(release: str) -> None:
    chosen = {"group.coordinator.new.enable": "true"}
    assert Settings.of(values={"kafka.version": "3.9", **chosen})[1] == []
    _, warnings = Settings.of(values={"kafka.version": release, **chosen})
    reason = f"release {release} has only one coordinator"
    assert warnings == [f"group.coordinator.new.enable: accepted, no effect here ({reason})"]


def test_settings_that_brokers_do_not_describe_have_no_effect() -> None:
    assert not INTERNAL & {*rules(), "profile", *broker_config_names()}
    assert not {name for name in rules() if name.startswith(PREFIXES)}


def test_the_shortest_session_cannot_be_longer_than_the_longest() -> None:
    with pytest.raises(InvalidSetting, match=r"group.max.session.timeout.ms=5999: .*group.min.*=6000"):
        Settings.of("kafka-defaults", {"group.max.session.timeout.ms": 5999})
    Settings.of("kafka-defaults", {"group.max.session.timeout.ms": 6000})


def test_the_profile_may_be_among_the_values() -> None:
    assert Settings.of(values={"profile": "kafka-defaults"})[0] == Settings()
    with pytest.raises(InvalidSetting, match="profile: given twice, as 'fast' and as 'kafka-defaults'"):
        Settings.of("fast", {"profile": "kafka-defaults"})


@pytest.mark.parametrize("profile", ["slow", "", 3, ["fast"]])
def test_an_unknown_profile_is_refused_with_the_valid_ones(profile: object) -> None:
    with pytest.raises(InvalidSetting, match=r"must be fast or kafka-defaults$"):
        Settings.of(values={"profile": profile})


def test_attributes_are_kafkas_names_with_underscores() -> None:
    assert all(hasattr(Settings(), attribute(name)) for name in rules())
    assert "log.dirs" not in rules()


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=1)


@pytest.mark.slow
@given(name=st.sampled_from([*rules(), "profile", "log.dirs"]) | st.text(), value=values)
def test_only_invalid_setting_is_raised_whatever_the_value(name: str, value: object) -> None:
    try:
        settings, _ = Settings.of(values={name: value})
    except InvalidSetting as refusal:
        said = str(refusal)
    else:
        assert isinstance(settings, Settings)
        return
    assert said.isprintable()
    assert not name.isprintable() or name[:80] in said


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("group.consumer.session.timeout.ms", 70_000, "to group.consumer.max.session.timeout.ms=60000"),
        ("group.consumer.heartbeat.interval.ms", 4_000, "group.consumer.min.heartbeat.interval.ms=5000"),
        ("group.consumer.assignment.interval.ms", 16_000, "to group.consumer.max.assignment.interval.ms=15000"),
        ("group.share.session.timeout.ms", 70_000, "to group.share.max.session.timeout.ms=60000"),
        ("group.share.heartbeat.interval.ms", 4_000, "group.share.min.heartbeat.interval.ms=5000"),
        ("group.share.assignment.interval.ms", 16_000, "to group.share.max.assignment.interval.ms=15000"),
        ("group.share.record.lock.duration.ms", 14_999, "group.share.min.record.lock.duration.ms=15000"),
        ("group.share.partition.max.record.locks", 4_001, "to group.share.max.partition.max.record.locks=4000"),
    ],
)
def test_settings_of_groups_keep_their_bounds(name: str, value: int, problem: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"^{name}={value}: must be from .*{problem}"):
        Settings.of("kafka-defaults", {name: value})


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_a_session_of_a_group_outlasts_its_heartbeat(kind: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"must be greater than group\.{kind}\.heartbeat\.interval\.ms=500"):
        Settings.of("fast", {f"group.{kind}.session.timeout.ms": 500})


def test_a_share_group_may_have_no_more_deliveries_than_its_bound() -> None:
    values = {"group.share.delivery.count.limit": 6, "group.share.max.delivery.count.limit": 5}
    with pytest.raises(InvalidSetting, match=r"from group\.share\.min\.delivery\.count\.limit=2 to .*=5$"):
        Settings.of("kafka-defaults", values)


def test_each_member_of_a_full_share_group_may_have_a_session() -> None:
    with pytest.raises(
        InvalidSetting, match=r"^group\.share\.max\.share\.sessions=199: .*group\.share\.max\.size=200$"
    ):
        Settings.of("kafka-defaults", {"group.share.max.share.sessions": 199})


@pytest.mark.parametrize(("release", "warned"), [("2.8", []), ("3.9", ["quota.consumer.default"])])
def test_a_default_of_quotas_warns_in_releases_without_it(release: str, warned: list[str]) -> None:
    _, warnings = Settings.of("fast", {"kafka.version": release, "quota.consumer.default": 1_000})
    assert warnings == [f"{name}: accepted, no effect here (release {release} does not have it)" for name in warned]
