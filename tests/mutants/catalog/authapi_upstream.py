"""Mutants of `authapi`: logins at external providers."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="authapi-upstream-state",
        at="authapi.upstream.authentication_requests:request_for",
        old="if hmac.compare_digest(request.state_digest, digest_of(match.group(2))) else None",
        new="",
        rule="The response of a provider must contain the state of the login that requested it.",
        tests=("tests/authapi/upstream/test_login.py",),
    ),
    Mutant(
        name="authapi-upstream-once",
        at="authapi.upstream.authentication_requests:end_request",
        old='return rows.update(sealed_upstream="") == 1',
        new='rows.update(sealed_upstream="")\n    return True',
        rule="A response of a provider is accepted once, even if several concurrent requests to this service contain it.",
        tests=("tests/authapi/upstream/test_login.py::test_only_the_first_of_two_requests_with_the_same_answer_uses_the_answer",),
    ),
    Mutant(
        name="authapi-upstream-nonce",
        at="authapi.upstream.id_token:verified_claims",
        old='"nonce": nonce if is_nonce_checked else ""',
        new='"nonce": ""',
        rule="The ID token of a provider must contain the nonce of the login that requested it.",
        tests=("tests/authapi/upstream/test_id_token.py",),
    ),
    Mutant(
        name="authapi-upstream-audience",
        at="authapi.upstream.id_token:verified_claims",
        old='"aud": {"essential": True, "value": client_id}',
        new='"aud": {"essential": True}',
        rule="The ID token of a provider must be issued for the client of the connection.",
        tests=("tests/authapi/upstream/test_id_token.py",),
    ),
    Mutant(
        name="authapi-upstream-key-issuer",
        at="authapi.upstream.id_token:opened",
        old="if not _may_sign(key_issuer, decoded.claims):",
        new="if False:",
        rule="A key that the provider publishes for one directory cannot sign tokens of another directory.",
        tests=("tests/authapi/upstream/social/test_login.py",),
    ),
    Mutant(
        name="authapi-upstream-userinfo-subject",
        at="authapi.upstream.openid_claims:openid_proven",
        old='if userinfo.get("sub") != claims["sub"]:',
        new="if False:",
        rule="The response of the userinfo endpoint must be about the user of the ID token.",
        tests=("tests/authapi/upstream/test_hostile_answers.py", "tests/authapi/upstream/test_login.py"),
    ),
    Mutant(
        name="authapi-upstream-tested-secrets",
        at="authapi.upstream.sent_claims:kept_claims",
        old=" or _is_hidden(name, value, read)",
        new="",
        rule="A test of a connection stores no tokens, and no claims whose names are names of secrets.",
        tests=("tests/authapi/upstream/test_tested_claims.py",),
    ),
    Mutant(
        name="authapi-upstream-tested-message",
        at="authapi.upstream.connection_tests:_message",
        old="shown_message(raw, hides=hides)",
        new="shown_message(raw)",
        rule="A connection test shows the decoded message without the values of attributes whose names are names of secrets.",
        tests=("tests/authapi/upstream/test_tested_claims.py",),
    ),
    Mutant(
        name="authapi-saml-audience",
        at="authapi.upstream.saml.judging:check_audience",
        old="if audience not in names:",
        new="if False:",
        rule="A SAML assertion must name this service as its audience.",
        tests=("tests/authapi/upstream/saml/test_responses.py",),
    ),
    Mutant(
        name="authapi-saml-recipient",
        at="authapi.upstream.saml.judging:_checked_confirmation",
        old="if confirmation.recipient not in expected.recipients:",
        new="if False:",
        rule="A SAML assertion must name the URL that receives it.",
        tests=("tests/authapi/upstream/saml/test_responses.py",),
    ),
    Mutant(
        name="authapi-saml-request",
        at="authapi.upstream.saml.judging:_check_request",
        old="elif named != expected.request_id:",
        new="elif False:",
        rule="A SAML response must name the authentication request that it answers.",
        tests=("tests/authapi/upstream/saml/test_responses.py",),
    ),
    Mutant(
        name="authapi-saml-expiry",
        at="authapi.upstream.saml.judging:check_times",
        old="now - SKEW >= not_on_or_after",
        new="False",
        rule="An expired SAML assertion is refused.",
        tests=("tests/authapi/upstream/saml/test_responses.py",),
    ),
)
