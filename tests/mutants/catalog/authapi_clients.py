"""Mutants of `authapi`: the authentication of clients."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="authapi-assertion-replay",
        at="authapi.client_auth.replays:use_once",
        old="return cursor.fetchone() is not None",
        new="return True",
        rule="A client assertion is accepted once, by only one of all processes.",
        tests=(
            "tests/authapi/client_auth/test_assertion_replay.py",
            "tests/authapi/client_auth/test_assertion.py",
        ),
    ),
    Mutant(
        name="authapi-assertion-audience",
        at="authapi.client_auth.assertion:is_acceptable",
        old='and _is_for(claims.get("aud"), hosts)',
        new="",
        rule="The audience of a client assertion must be this service.",
        tests=("tests/authapi/client_auth/test_assertion.py",),
    ),
    Mutant(
        name="authapi-assertion-single-audience",
        at="authapi.client_auth.assertion:_is_for",
        old="isinstance(audience, list) and len(audience) == 1",
        new="isinstance(audience, list)",
        rule="A client assertion with several audiences is refused, because another audience could replay it.",
        tests=("tests/authapi/client_auth/test_assertion.py",),
    ),
    Mutant(
        name="authapi-assertion-life",
        at="authapi.client_auth.assertion:is_acceptable",
        old=" <= now + MAX_LIFE_SECONDS + SKEW_SECONDS",
        new="",
        rule="A client assertion is valid for at most five minutes.",
        tests=("tests/authapi/client_auth/test_assertion.py",),
    ),
    Mutant(
        name="authapi-assertion-issuer",
        at="authapi.client_auth.assertion:is_acceptable",
        old='claims.get("iss") == claims.get("sub") == client_id',
        new='claims.get("sub") == client_id',
        rule="The issuer of a client assertion must be the client itself.",
        tests=("tests/authapi/client_auth/test_assertion.py",),
    ),
    Mutant(
        name="authapi-certificate-subject",
        at="authapi.client_auth.mutual_tls:is_registered",
        old="return read_subject(credential.subject_dn) == certificate.subject",
        new="return True",
        rule="A certificate authenticates only the client that has registered the subject of the certificate.",
        tests=("tests/authapi/client_auth/test_mutual_tls.py",),
    ),
    Mutant(
        name="authapi-certificate-thumbprint",
        at="authapi.client_auth.mutual_tls:is_registered",
        old="return hmac.compare_digest(credential.thumbprint, certificate.thumbprint)",
        new="return True",
        rule="A self-signed certificate authenticates only the client that registered it.",
        tests=("tests/authapi/client_auth/test_mutual_tls.py",),
    ),
    Mutant(
        name="authapi-client-method",
        at="authapi.client_auth:_is_proof",
        old=" or credential.method != client.auth_method",
        new="",
        rule="A client can authenticate only with its registered authentication method.",
        tests=("tests/authapi/test_client_auth.py",),
    ),
    Mutant(
        name="authapi-client-two-methods",
        at="authapi.client_auth:_presented",
        old="if len(proofs) > 1:",
        new="if False:",
        rule="A request with two client authentication methods is refused.",
        tests=("tests/authapi/test_client_auth.py",),
    ),
    Mutant(
        name="authapi-proofs-run",
        at="authapi.possession.replays:UsedProofs._current",
        old='if stored.endswith(f".{run}"):',
        new="if stored:",
        rule="After Redis was restarted or a Redis replica was promoted, a new generation of nonces begins.",
        tests=("tests/authapi/possession/test_endpoints.py",),
    ),
)
