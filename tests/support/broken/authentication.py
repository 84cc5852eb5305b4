"""Authentication: each rule of SASL and TLS, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

CODE = "emulator/broker/authentication"
TESTS = "tests/broker/test_authentication.py"
TLS_TESTS = "tests/server/test_tls.py"

SASL = "SASL"
TLS = "TLS"

AUTHENTICATION_RULES = (
    BrokenRule(
        SASL,
        "nothing but ApiVersions and SaslHandshake is served before the authentication",
        f"{CODE}/authenticator.py",
        'raise NotAuthenticated(f"a request before the authentication',
        'print(f"a request before the authentication',
        (f"{TESTS}::test_another_first_request_closes_the_connection",),
    ),
    BrokenRule(
        SASL,
        "ApiVersions is answered once",
        f"{CODE}/authenticator.py",
        "        self._state = State.HANDSHAKE\n",
        "        pass\n",
        (f"{TESTS}::test_api_versions_is_answered_once",),
    ),
    BrokenRule(
        SASL,
        "a session that has ended serves SaslHandshake only (KIP-368)",
        f"{CODE}/authenticator.py",
        "now >= self._ends_at and key != ApiKey.SASL_HANDSHAKE",
        "now > self._ends_at + 10_000",
        (
            f"{TESTS}::test_a_session_without_reauthentication_ends_with_the_next_request",
            f"{TESTS}::test_a_token_logs_in_until_it_ends",
        ),
    ),
    BrokenRule(
        SASL,
        "re-authentication keeps the principal (KIP-368)",
        f"{CODE}/authenticator.py",
        "self._is_repeated and step.user != self.user",
        "self._is_repeated and step.user is None",
        (f"{TESTS}::test_reauthentication_keeps_the_principal",),
    ),
    BrokenRule(
        SASL,
        "re-authentication keeps the mechanism (KIP-368)",
        f"{CODE}/authenticator.py",
        "is_done and mechanism != self._mechanism",
        "False",
        (f"{TESTS}::test_reauthentication_keeps_the_mechanism",),
    ),
    BrokenRule(
        SASL,
        "a failed authentication is answered late",
        "emulator/broker/sasl_requests.py",
        "        if delay_ms:\n",
        "        if delay_ms < 0:\n",
        (f"{TESTS}::test_a_failure_is_answered_late_and_nothing_is_served_meanwhile",),
    ),
    BrokenRule(
        SASL,
        "PLAIN compares the password",
        f"{CODE}/mechanisms.py",
        "expected is None or not hmac.compare_digest(expected.encode(), password.encode())",
        "expected is None",
        (f"{TESTS}::test_plain_refuses_with_the_text_of_kafka",),
    ),
    BrokenRule(
        SASL,
        "SCRAM verifies the proof of the client",
        f"{CODE}/mechanisms.py",
        "if not hmac.compare_digest(digest(self._mechanism, client_key), stored_key):",
        "if not client_key:",
        (f"{TESTS}::test_scram_refuses_a_wrong_password_at_the_second_message_and_an_unknown_user_at_the_first",),
    ),
    BrokenRule(
        SASL,
        "a token is valid until its exp (KIP-255)",
        f"{CODE}/tokens.py",
        "ends_at is None or ends_at <= now",
        "ends_at is None",
        (f"{TESTS}::test_an_invalid_token_is_refused_after_the_client_has_read_why",),
    ),
    BrokenRule(
        SASL,
        "a signed token is for its audience (KIP-768)",
        f"{CODE}/tokens.py",
        "any(each in expected for each in audiences)",
        "bool(audiences)",
        ("tests/broker/test_signed_tokens.py::test_issuer_audience_and_names_of_claims_are_settings",),
    ),
    BrokenRule(
        SASL,
        "a token of another key than its `kid` names is refused (KIP-768)",
        f"{CODE}/tokens.py",
        'if header.get("kid") in {None, key.get("kid")}',
        "if key",
        ("tests/broker/test_signed_tokens.py::test_a_token_without_the_signature_of_a_known_key_is_refused",),
    ),
    BrokenRule(
        SASL,
        "expire_authentication ends sessions at once",
        f"{CODE}/authenticator.py",
        "            self._ends_at = now\n",
        "            pass\n",
        ("tests/control/test_credentials.py::test_the_sessions_of_a_user_end_with_the_next_request",),
    ),
    BrokenRule(
        SASL,
        "a client with a delegation token gets no other (KIP-48)",
        "emulator/core/data/delegation_tokens.py",
        " and not call.has_token",
        "",
        (("tests/broker/test_delegation_tokens.py::test_a_client_with_a_token_is_its_owner_and_gets_no_other_token"),),
    ),
    BrokenRule(
        SASL,
        "only owner and renewers change a delegation token (KIP-48)",
        "emulator/core/data/delegation_tokens.py",
        "return call.principal in (token.owner, *token.renewers)",
        "return bool(call.principal)",
        ("tests/broker/test_delegation_tokens.py::test_only_owners_and_renewers_change_a_token_and_rights_show_it",),
    ),
    BrokenRule(
        SASL,
        "the report of a bug shows no secret",
        "emulator/broker/request_reader.py",
        '        if key in SECRET_APIS:\n            peer.frame = b""\n',
        "",
        (f"{TESTS}::test_no_secret_is_in_the_report_of_a_bug",),
    ),
    BrokenRule(
        TLS,
        "ssl.client.auth decides whether clients need a certificate",
        "emulator/server/certificates.py",
        "context.verify_mode = CLIENT_AUTH[client_auth]",
        'context.verify_mode = CLIENT_AUTH["none"]',
        (
            f"{TLS_TESTS}::test_client_certificates_are_checked_as_ssl_client_auth_says",
            f"{TLS_TESTS}::test_a_certificate_of_another_authority_is_refused",
        ),
    ),
    BrokenRule(
        TLS,
        "the client is told why its handshake fails, and the log has the remedy",
        "emulator/server/server.py",
        "            self._host_log.tell(connection.client_host, reason, line)\n",
        "",
        (f"{TLS_TESTS}::test_a_client_without_trust_is_told_in_the_log_where_the_certificate_is",),
    ),
    BrokenRule(
        TLS,
        "a connection whose client ends TLS is closed",
        "emulator/server/tls.py",
        '            self.closing = ""\n',
        "            pass\n",
        (f"{TLS_TESTS}::test_a_client_that_closes_tls_and_not_its_socket_is_disconnected",),
    ),
)
