"""Mutants of `authapi`: the edge of the service, changes of accounts, and the administrative log."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="authapi-block-ends-tokens",
        at="authapi.accounts.account_changes:end_what_rested_on_it",
        old="        revoke_refresh_tokens(tenant_id=user.tenant_id, user_id=user.pk)\n",
        new="",
        rule="Blocking a user revokes the refresh tokens. They stay revoked after the user is unblocked.",
        tests=("tests/authapi/accounts/test_account_changes.py",),
    ),
    Mutant(
        name="authapi-block-ends-sessions",
        at="authapi.accounts.account_changes:end_what_rested_on_it",
        old="        end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.ACCOUNT_DEACTIVATED)\n",
        new="",
        rule="Blocking a user ends the sessions. They stay ended after the user is unblocked.",
        tests=("tests/authapi/accounts/test_account_changes.py",),
    ),
    Mutant(
        name="authapi-forwarded-certificate",
        at="authapi.edge.mtls:without_untrusted",
        old='if is_single and _is_vouched(headers.get(KEY_HEADER, ""), host):',
        new="if is_single:",
        rule="A forwarded certificate is accepted only with the key of the proxy that forwards the certificate.",
        tests=("tests/authapi/client_auth/test_mutual_tls.py",),
    ),
    Mutant(
        name="authapi-anonymous-budget",
        at="authapi.edge.open_rates:admitted_stranger_async",
        old="if rate is not None and not rate.is_exceeded:",
        new="if False:",
        rule="A request without a credential counts against the limit of anonymous callers only if the limit of its IP address is used up.",
        tests=("tests/authapi/login/test_open_rates.py",),
    ),
    Mutant(
        name="authapi-bodies-bound",
        at="authapi.edge.unread_bodies:UnreadBodies.take",
        old="while self.size + size > self._most:",
        new="while False:",
        rule="The memory that all incomplete request bodies use together is bounded.",
        tests=("tests/authapi/edge/test_unread_bodies.py",),
    ),
    Mutant(
        name="authapi-bodies-released",
        at="authapi.edge.unread_bodies:UnreadBodies.held",
        old="self._give_back(body)",
        new="pass",
        rule="The memory of a request body is released after the response.",
        tests=("tests/authapi/edge/test_unread_bodies.py",),
    ),
    Mutant(
        name="authapi-rates-without-redis",
        at="authapi.edge.throttling:Counters._ask",
        old="lambda: question(self._own)",
        new="lambda: 0",
        rule="Without Redis, each process counts the requests in memory.",
        tests=("tests/authapi/edge/test_throttling.py",),
    ),
    Mutant(
        name="authapi-administrative-line",
        at="authapi.services.administrative_log:note_work",
        old="insert([_line_of(under_way, code, status=under_way.status) for code in types])",
        new="pass",
        rule="Each write through the management interface adds an administrative line in the transaction of the write.",
        tests=("tests/authapi/api/test_administrative_log.py",),
    ),
    Mutant(
        name="authapi-keys-previous-verifies",
        at="authapi.tokens.keys:_rotate",
        old="verifies_until=now + _VERIFIES_AFTER_ROTATION",
        new="verifies_until=now",
        rule="After a signing key was replaced, the tokens that it has signed stay valid until they expire.",
        tests=("tests/authapi/tokens/test_keys.py",),
    ),
)
