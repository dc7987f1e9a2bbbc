"""Mutants of `authapi`: logins, sessions and passwords."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="authapi-session-tenant",
        at="authapi.login.sessions:find_session",
        old="alive = Session.objects.of(tenant_id)",
        new="alive = Session.all_tenants",
        rule="The cookie of a session is unknown at other tenants.",
        tests=("tests/authapi/login/test_sessions.py",),
    ),
    Mutant(
        name="authapi-session-expiry",
        at="authapi.login.sessions:_touched",
        old="min(now + idle, session.expires_at)",
        new="now + idle",
        rule="Requests in a session never extend its absolute lifetime.",
        tests=("tests/authapi/login/test_sessions.py",),
    ),
    Mutant(
        name="authapi-session-idle",
        at="authapi.login.sessions:find_session",
        old=", idle_expires_at__gt=now",
        new="",
        rule="A session that was idle for too long is refused.",
        tests=("tests/authapi/login/test_sessions.py",),
    ),
    Mutant(
        name="authapi-session-blocked-user",
        at="authapi.login.sessions:find_session",
        old="session is None or session.user.blocked",
        new="session is None",
        rule="The session of a blocked user is refused.",
        tests=(
            "tests/authapi/login/test_sessions.py",
            "tests/authapi/accounts/test_account_changes.py",
        ),
    ),
    Mutant(
        name="authapi-sessions-of-deleted-users",
        at="authapi.login.sessions:end_with_users",
        old="end_session(session, reason=Initiator.ACCOUNT_DELETED)",
        new="pass",
        rule="Users who are deleted together are logged out, and the clients are notified.",
        tests=("tests/authapi/login/test_sessions.py",),
    ),
    Mutant(
        name="authapi-session-fixation",
        at="authapi.login.sessions:add_proof",
        old="digest=digest_of(secret), methods=added",
        new="methods=added",
        rule="After the user has proven a second factor, the session gets a new cookie.",
        tests=(
            "tests/authapi/login/test_sessions.py",
            "tests/authapi/factors/test_challenge_page.py",
        ),
    ),
    Mutant(
        name="authapi-login-browser",
        at="authapi.login.transactions:kept_transaction",
        old="not browser or row.browser_digest != digest_of(browser)",
        new="False",
        rule="A login continues only in the browser that began it.",
        tests=("tests/authapi/protocols/oauth/test_authorize.py::test_a_login_started_by_another_browser_cannot_be_finished",),
    ),
    Mutant(
        name="authapi-login-expiry",
        at="authapi.login.transactions:kept_transaction",
        old=", expires_at__gt=timezone.now()",
        new="",
        rule="A login that was not finished in time is refused.",
        tests=("tests/authapi/protocols/oauth/test_authorize.py::test_a_login_request_expires",),
    ),
    Mutant(
        name="authapi-form-token",
        at="authapi.login.cookies:is_own_form",
        old="hmac.compare_digest(token.encode(), form_token(cookie).encode())",
        new="True",
        rule="A form that was created for another browser is refused.",
        tests=("tests/authapi/protocols/oauth/test_authorize.py::test_a_form_of_another_site_is_refused",),
    ),
    Mutant(
        name="authapi-form-origin",
        at="authapi.login.cookies:is_own_form",
        old="and is_same_origin ",
        new="",
        rule="A form that another site posts is refused.",
        tests=("tests/authapi/protocols/oauth/test_authorize.py::test_a_form_of_another_site_is_refused",),
    ),
    Mutant(
        name="authapi-brute-force-blocks",
        at="authapi.accounts.brute_force:Count.is_blocked",
        old="row.count >= self.rules.max_attempts",
        new="False",
        rule="An identifier is blocked after too many wrong passwords.",
        tests=("tests/authapi/accounts/test_brute_force.py",),
    ),
    Mutant(
        name="authapi-brute-force-lock",
        at="authapi.accounts.brute_force:held_count",
        old='lock_name(f"login:{connection.pk}:{count.ip}:{identifier}")',
        new="pass",
        rule="Concurrent attempts to log in to one account are counted one after another, so that each attempt is counted.",
        tests=("tests/authapi/accounts/test_brute_force.py",),
    ),
    Mutant(
        name="authapi-brute-force-network",
        at="authapi.accounts.brute_force:counted_address",
        old="return customer_of(keys_of(ip)) if",
        new="return ip if",
        rule="Login attempts from addresses of one IPv6 network (/64) are counted together.",
        tests=("tests/authapi/accounts/test_brute_force.py",),
    ),
    Mutant(
        name="authapi-consent-scopes",
        at="authapi.login.consents:needs_consent",
        old="if not is_implied and not set(terms.scopes) <= set(row.scopes if row is not None else ()):",
        new="if row is None and not is_implied and terms.scopes:",
        rule="A user must consent to each scope that the user has not granted before.",
        tests=(
            "tests/authapi/login/test_protocols.py",
            "tests/authapi/protocols/oauth/test_authorize.py",
        ),
    ),
)
