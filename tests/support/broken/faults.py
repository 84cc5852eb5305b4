"""Rules and holds: what each guarantees, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

CODE = "emulator/control/faults"
ACTIONS = "tests/control/faults/test_actions.py"
MATCHING = "tests/control/faults/test_matching.py"
HOLDS = "tests/control/faults/test_holds.py"

FAULTS = "Faults"

FAULT_RULES = (
    BrokenRule(
        FAULTS,
        "`nth` acts on one match",
        f"{CODE}/rules.py",
        "return matched == self.nth",
        "return matched >= self.nth",
        (
            f"{MATCHING}::TestTriggers::test_a_rule_acts_on_the_matches_its_trigger_selects",
            f"{MATCHING}::TestTriggers::test_one_rule_per_slot_acts_and_slots_combine",
        ),
    ),
    BrokenRule(
        FAULTS,
        "`times` counts actions",
        f"{CODE}/rules.py",
        "return acted < self.times",
        "return matched < self.times",
        (
            f"{MATCHING}::TestTriggers::test_a_rule_acts_on_the_matches_its_trigger_selects",
            f"{MATCHING}::TestTriggers::test_one_rule_per_slot_acts_and_slots_combine",
        ),
    ),
    BrokenRule(
        FAULTS,
        "`every` acts on each n-th match",
        f"{CODE}/rules.py",
        "return matched % self.every == 0",
        "return matched % self.every == 1",
        (f"{MATCHING}::TestTriggers::test_a_rule_acts_on_the_matches_its_trigger_selects",),
    ),
    BrokenRule(
        FAULTS,
        "`once` acts once",
        f"{CODE}/rules.py",
        "            return acted == 0\n",
        "            return matched == 1\n",
        (f"{MATCHING}::TestTriggers::test_one_rule_per_slot_acts_and_slots_combine",),
    ),
    BrokenRule(
        FAULTS,
        "a member is named by its instance id, too",
        f"{CODE}/rules.py",
        "(*context.member_ids, *context.instance_ids, context.client_id) if pattern",
        "(*context.member_ids, context.client_id) if pattern",
        (
            f"{MATCHING}::TestMatches::test_each_field_of_a_match_is_compared",
            f"{MATCHING}::TestMatches::test_a_fetch_matches_the_group_of_its_client",
        ),
    ),
    BrokenRule(
        FAULTS,
        "a version range has both of its ends",
        f"{CODE}/rules.py",
        "lambda context: low <= context.version <= high",
        "lambda context: low <= context.version < high",
        (f"{MATCHING}::TestMatches::test_each_field_of_a_match_is_compared",),
    ),
    BrokenRule(
        FAULTS,
        "the oldest rule of a slot acts",
        f"{CODE}/fault_injector.py",
        "if slot in rules or not rule.trigger.acts(",
        "if not rule.trigger.acts(",
        (
            f"{ACTIONS}::TestErrors::test_a_join_refused_by_a_full_group_has_no_member_id",
            f"{ACTIONS}::TestConnections::test_a_byte_action_closes_the_connection_of_a_puppet",
        ),
    ),
    BrokenRule(
        FAULTS,
        "`never_answer` without `apply` parks the request",
        f"{CODE}/fault_injector.py",
        "            case NeverAnswer(apply=False):\n                return (Park(),)\n",
        "",
        (f"{ACTIONS}::TestConnections::test_never_answer_also_blocks_later_requests_on_the_connection",),
    ),
    BrokenRule(
        FAULTS,
        "a lost reply is applied, and closes the connection",
        f"{CODE}/fault_injector.py",
        "if isinstance(action, LoseReply) or (",
        "if (",
        (f"{ACTIONS}::TestConnections::test_lose_reply_applies_the_request_before_closing_the_connection",),
    ),
    BrokenRule(
        FAULTS,
        "a lock-step releases its round in the seed's order",
        f"{CODE}/fault_injector.py",
        'key=lambda request: draw(self._seed, "lockstep", *name, hold_point.client_of(request))',
        "key=lambda request: 0",
        (f"{HOLDS}::TestLockstep::test_the_outcome_does_not_depend_on_arrival_order",),
    ),
    BrokenRule(
        FAULTS,
        "a released request of a closed connection passes further holds and rules",
        f"{CODE}/fault_injector.py",
        "            if not in_flight.client_closed:\n                steps, _",
        "            if True:\n                steps, _",
        (f"{HOLDS}::TestClosedConnections::test_rules_skip_requests_of_closed_connections",),
    ),
    BrokenRule(
        FAULTS,
        "a delay in the group's time follows its clock",
        f"{CODE}/fault_injector.py",
        'in_group_time = isinstance(delay, Delay) and delay.clock == "group"',
        "in_group_time = False",
        (f"{ACTIONS}::TestTimes::test_a_delay_in_group_time_ends_when_the_group_clock_advances",),
    ),
    BrokenRule(
        FAULTS,
        "a throttle sets throttle_time_ms",
        f"{CODE}/fault_injector.py",
        'response = replace(cast("Any", response), throttle_time_ms=throttle.ms)',
        "pass",
        (f"{ACTIONS}::TestTimes::test_throttle_sets_throttle_time_without_a_delay",),
    ),
    BrokenRule(
        FAULTS,
        "a truncated response ends its connection",
        f"{CODE}/fault_injector.py",
        "return cut, Disconnect(",
        "return (cut,) if True else Disconnect(",
        (f"{ACTIONS}::TestConnections::test_truncate_cuts_the_response_and_closes_the_connection",),
    ),
)
