"""The values of settings in which profiles and older releases differ from the defaults of `Settings`."""

from __future__ import annotations

_OLD_PROTOCOLS = {
    "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
}

_OLD_SHARE_GROUPS = {"group_share_partition_max_record_locks": 200}

OLD_DEFAULTS: dict[str, dict[str, object]] = {
    "2.4": {
        **_OLD_PROTOCOLS,
        "message_max_bytes": 1_000_012,
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": 60_000,
    },
    "2.8": {**_OLD_PROTOCOLS},
    "3.9": {**_OLD_SHARE_GROUPS},
    "4.0": {**_OLD_SHARE_GROUPS},
}
"""The defaults of releases in which they are not those of `Settings`."""

PROFILES: dict[str, dict[str, object]] = {
    "fast": {
        "group_initial_rebalance_delay_ms": 0,
        "group_min_session_timeout_ms": 1,
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": 100,
        "group_consumer_min_session_timeout_ms": 1,
        "group_consumer_min_heartbeat_interval_ms": 1,
        "group_consumer_heartbeat_interval_ms": 500,
        "group_consumer_assignment_interval_ms": 0,
        "group_share_min_session_timeout_ms": 1,
        "group_share_min_heartbeat_interval_ms": 1,
        "group_share_heartbeat_interval_ms": 500,
        "group_share_assignment_interval_ms": 0,
        "group_share_min_record_lock_duration_ms": 1_000,
        "group_streams_min_session_timeout_ms": 1,
        "group_streams_min_heartbeat_interval_ms": 1,
        "group_streams_heartbeat_interval_ms": 500,
        "group_streams_initial_rebalance_delay_ms": 0,
        "group_streams_assignment_interval_ms": 0,
        "coordinator_found_at_once": True,
        "log_retention_by_default": False,
        "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "connection_failed_authentication_delay_ms": 0,
    },
    "kafka-defaults": {},
}
"""The values in which each profile differs from Kafka's defaults. `fast` is for tests: no initial delay, session
timeouts from 1 ms, heartbeats of the newer groups every 500 ms and a target with every change, locks of
records from 1 s, a coordinator at the first lookup, all mechanisms of SASL, errors of authentication at once, and
records with any timestamp stay."""
