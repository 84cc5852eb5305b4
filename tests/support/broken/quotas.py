"""Quotas: each rule, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

BROKER = "emulator/broker/quotas.py"
MUTATIONS = "emulator/broker/mutation_quota.py"
RATES = "emulator/core/quotas/rates.py"
TESTS = "tests/broker/test_quotas.py"
THROTTLE_TESTS = "tests/control/faults/test_throttle.py"
RATE_TESTS = "tests/core/quotas/test_rates.py"

QUOTAS = "quotas"

QUOTA_RULES = (
    BrokenRule(
        QUOTAS,
        "the first window counts as if all full windows had passed",
        RATES,
        "missing = self._windows - 1 - elapsed // self._window_ms",
        "missing = 0",
        (f"{RATE_TESTS}::test_the_first_amount_counts_over_all_full_windows",),
    ),
    BrokenRule(
        QUOTAS,
        "the controller grants the mutations of all windows at once (KIP-599)",
        RATES,
        "min(self._burst_s * quota, self._tokens + gained)",
        "min(quota, self._tokens + gained)",
        (f"{RATE_TESTS}::test_a_bucket_begins_with_the_permits_of_all_windows",),
    ),
    BrokenRule(
        QUOTAS,
        "a quota of user and client id comes before one of the user",
        "emulator/core/quotas/entities.py",
        "    for user_name in (user, None):\n",
        "    for user_name in (None, user):\n",
        ("tests/core/quotas/test_entities.py::test_the_most_special_entity_counts_and_its_clients_share_the_limit",),
    ),
    BrokenRule(
        QUOTAS,
        "a throttled connection is muted (KIP-219)",
        "emulator/broker/node_connections.py",
        "        peer.is_throttled = True\n",
        "        pass\n",
        (
            f"{TESTS}::test_a_throttled_produce_is_answered_at_once_and_its_connection_muted_for_the_throttle_time",
            f"{TESTS}::test_a_produce_without_acks_mutes_its_connection",
        ),
    ),
    BrokenRule(
        QUOTAS,
        "a rule that throttles mutes the connection, if it is to",
        "emulator/control/faults/fault_injector.py",
        "throttle.ms if isinstance(throttle, Throttle) and throttle.mute else 0",
        "0",
        (f"{THROTTLE_TESTS}::test_a_throttled_member_is_answered_at_once_and_its_next_request_after_the_time",),
    ),
    BrokenRule(
        QUOTAS,
        "what a throttled fetch did not return does not count",
        BROKER,
        "            self._rate(now, CONSUMER_BYTES, quota).record(now, -size)",
        "            self._rate(now, CONSUMER_BYTES, quota).record(now, 0)",
        (f"{TESTS}::test_a_throttled_fetch_is_empty_and_does_not_count",),
    ),
    BrokenRule(
        QUOTAS,
        "a request is throttled for one window at most, whatever its share of a thread",
        BROKER,
        "min(self._count(now, call, REQUEST_PERCENTAGE, percentage), settings.quota_window_size_seconds * MS)",
        "self._count(now, call, REQUEST_PERCENTAGE, percentage) * 2",
        (f"{TESTS}::test_request_percentage_limits_the_requests_of_a_client_whatever_they_ask",),
    ),
    BrokenRule(
        QUOTAS,
        "a refused connection does not count (KIP-612)",
        BROKER,
        "self._rate(now, CONNECTIONS, quota).record(now, -1)",
        "self._rate(now, CONNECTIONS, quota).record(now, 0)",
        (
            f"{TESTS}::test_connections_beyond_the_rate_of_their_address_are_not_served_and_closed_after_the_throttle_time",
        ),
    ),
    BrokenRule(
        QUOTAS,
        "an invalid row takes no permit of the controller (KIP-599)",
        MUTATIONS,
        "if not row.error_code}\n            for created",
        "}\n            for created",
        (f"{TESTS}::test_an_invalid_row_takes_no_permit",),
    ),
)
