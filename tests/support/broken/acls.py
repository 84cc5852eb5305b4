"""ACLs: each rule of the authorizer and of refusals, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

CORE = "emulator/core/acls"
GUARDS = "emulator/broker/authorization"
TESTS = "tests/broker/test_authorization.py"
TOPICS = "tests/broker/test_topic_rights.py"

ACLS = "ACLs"

A_RIGHT = f"{TESTS}::test_a_right_is_for_a_principal_a_host_an_operation_and_the_resources_of_a_pattern"

ACL_RULES = (
    BrokenRule(
        ACLS,
        "a DENY beats every ALLOW",
        f"{CORE}/authorizer.py",
        "            if acl.permission == Permission.DENY and fits:\n                return False\n",
        "",
        (A_RIGHT,),
    ),
    BrokenRule(
        ACLS,
        "a DENY implies nothing",
        f"{CORE}/authorizer.py",
        "Permission.DENY and fits:",
        "Permission.DENY and (fits or operation == Operation.READ):",
        (A_RIGHT,),
    ),
    BrokenRule(
        ACLS,
        "super users are not asked for ACLs",
        f"{CORE}/authorizer.py",
        "if not call.principal or call.principal in self._super_users:",
        "if not call.principal:",
        (f"{TESTS}::test_super_users_may_do_everything_even_what_is_denied",),
    ),
    BrokenRule(
        ACLS,
        "Read, Write, Delete and Alter imply Describe",
        f"{CORE}/authorizer.py",
        "frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER})",
        "frozenset({Operation.READ, Operation.WRITE, Operation.CREATE})",
        (f"{TESTS}::test_some_operations_imply_describe",),
    ),
    BrokenRule(
        ACLS,
        "an ACL is for one host, or for all",
        f"{CORE}/authorizer.py",
        ' and acl.host in (ANY_NAME, call.client_host.lstrip("/"))',
        "",
        (A_RIGHT,),
    ),
    BrokenRule(
        ACLS,
        "a prefix fits the names that begin with it",
        f"{CORE}/acl.py",
        "kind == resource_type and length <= len(name)",
        "kind == resource_type and length < len(name)",
        (A_RIGHT,),
    ),
    BrokenRule(
        ACLS,
        "a resource without ACLs is open only if a setting says so",
        f"{CORE}/authorizer.py",
        "self._allows_without_acls and not has_acls",
        "self._allows_without_acls",
        (f"{TESTS}::test_what_no_acl_names_is_everybodys_if_a_setting_says_so",),
    ),
    BrokenRule(
        ACLS,
        "a right to write anywhere is none where everything is denied",
        f"{CORE}/authorizer.py",
        "        if (PatternType.LITERAL, ANY_NAME) in denied:\n            return False\n",
        "",
        (f"{TESTS}::test_an_idempotent_producer_may_write_some_topic",),
    ),
    BrokenRule(
        ACLS,
        "denied rows do not reach the core",
        f"{GUARDS}/guards.py",
        "            replace(request, **{field: tuple(allowed)}), lambda",
        "            request, lambda",
        (f"{TESTS}::test_a_request_is_served_without_the_rows_that_are_denied",),
    ),
    BrokenRule(
        ACLS,
        "denied rows are answered",
        "emulator/broker/broker.py",
        "            response = self._authorization.complete(call, response)\n",
        "            pass\n",
        (f"{TESTS}::test_a_request_is_served_without_the_rows_that_are_denied",),
    ),
    BrokenRule(
        ACLS,
        "a denied Produce with acks 0 closes the connection",
        f"{GUARDS}/table.py",
        "    ApiKey.PRODUCE: closing_without_acks(",
        "    ApiKey.PRODUCE: all_of(",
        (f"{TESTS}::test_a_producer_without_acks_is_told_by_the_end_of_its_connection",),
    ),
    BrokenRule(
        ACLS,
        "every version of an API needs its rights",
        f"{GUARDS}/authorization.py",
        "GUARDS.get(call.api_key)",
        "GUARDS.get(call.api_key if call.api_version else -1)",
        (f"{TESTS}::test_the_oldest_version_of_list_offsets_needs_the_right_too",),
    ),
    BrokenRule(
        ACLS,
        "a verified certificate names its client",
        "emulator/broker/broker.py",
        "            peer.principal = user_principal(mapped(",
        "            print(mapped(",
        ("tests/server/test_client_certificates.py::test_a_client_has_the_rights_of_its_certificate",),
    ),
    BrokenRule(
        ACLS,
        "a fetch reads no topic that is denied",
        "emulator/core/data/fetch.py",
        "        if self._name(key) in fetch.denied:\n            return Error.TOPIC_AUTHORIZATION_FAILED\n",
        "",
        (f"{TESTS}::test_a_fetch_session_keeps_a_partition_that_is_denied",),
    ),
    BrokenRule(
        ACLS,
        "a pattern of a consumer group finds no topic that its client may not describe",
        "emulator/core/groups/consumer/patterns.py",
        "    if authorizer is None or call is None:\n",
        "    if call is None or call.principal:\n",
        ("tests/broker/test_group_rights.py::test_a_pattern_finds_the_topics_that_its_client_may_describe",),
    ),
    BrokenRule(
        ACLS,
        "a topic is created only for those who may create it",
        f"{GUARDS}/topic_guards.py",
        "elif not ids and _would_create(client, request, name) and not _may_create(client, name):",
        "elif name is None:",
        (f"{TESTS}::test_a_topic_is_not_created_for_a_client_that_may_not_create_it",),
    ),
    BrokenRule(
        ACLS,
        "beside an unknown resource no topic is altered without its right",
        f"{GUARDS}/topic_guards.py",
        "is_allowed = row.resource_type in unknown or client.may(operation, kind, name)",
        "is_allowed = bool(unknown) or client.may(operation, kind, name)",
        (f"{TOPICS}::test_beside_configs_of_an_unknown_type_no_topic_is_altered_without_its_right",),
    ),
)
