"""Mutants of `authapi`: access tokens and proofs of possession."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="authapi-verify-times",
        at="authapi.tokens.verifying:_check_times",
        old="claims.expires_at <= now or ",
        new="",
        rule="An expired access token is refused.",
        tests=("tests/authapi/tokens/test_tokens.py",),
    ),
    Mutant(
        name="authapi-verify-issuer",
        at="authapi.tokens.verifying:_counting",
        old="if not is_issuer(claims.issuer, known.hosts):",
        new="if False:",
        rule="An access token must be issued by a host of this tenant.",
        tests=(
            "tests/authapi/tokens/test_tokens.py",
            "tests/authapi/test_forged_tokens.py",
        ),
    ),
    Mutant(
        name="authapi-verify-client-version",
        at="authapi.tokens.verifying:_check_state",
        old="state.is_revoked or state.client_version != claims.client_version",
        new="state.is_revoked",
        rule="An access token is refused if its client, or the secret or scopes of the client, were changed after the token was issued.",
        tests=("tests/authapi/tokens/test_tokens.py",),
    ),
    Mutant(
        name="authapi-verify-revoked",
        at="authapi.tokens.verifying:_check_state",
        old="state.is_revoked or ",
        new="",
        rule="A revoked access token is refused.",
        tests=(
            "tests/authapi/tokens/test_tokens.py",
            "tests/authapi/test_revocation.py",
        ),
    ),
    Mutant(
        name="authapi-verify-audience",
        at="authapi.tokens.verifying:_verify",
        old="if not is_for_management or not",
        new="if not",
        rule="The management interface accepts only tokens that were issued for the management interface.",
        tests=("tests/authapi/tokens/test_tokens.py",),
    ),
    Mutant(
        name="authapi-verify-global",
        at="authapi.tokens.verifying:_verify",
        old=" or not (state.is_global or claims.is_machine)",
        new="",
        rule="The management interface accepts the token of a user only if the token was issued to a global client.",
        tests=(
            "tests/authapi/tokens/test_tokens.py",
            "tests/authapi/test_user_tokens.py",
        ),
    ),
    Mutant(
        name="authapi-verify-bound",
        at="authapi.tokens.verifying:_unbound",
        old="if claims.confirmation and not takes_bound:",
        new="if False:",
        rule="An endpoint that does not check proofs of possession refuses bound tokens.",
        tests=("tests/authapi/possession/test_interfaces.py",),
    ),
    Mutant(
        name="authapi-token-state-tenant",
        at="authapi.tokens.token_state:_load_token_states",
        old="clients.get((tenant_id, client_id), _UNKNOWN)",
        new="next((state for key, state in clients.items() if key[1] == client_id), _UNKNOWN)",
        rule="The state of a token is read from the client of the token's tenant, and never from a client of another tenant.",
        tests=(
            "tests/authapi/tokens/test_token_state.py",
            "tests/authapi/tokens/test_tokens.py",
        ),
    ),
    Mutant(
        name="authapi-stream-client-revoked",
        at="authapi.tokens.token_state:stream_state",
        old=" AND revoked_at IS NULL",
        new="",
        rule="The state that open streams check contains only clients that are not revoked. So the streams of a revoked client end.",
        tests=("tests/authapi/tokens/test_token_state.py",),
    ),
    Mutant(
        name="authapi-dpop-access-token",
        at="authapi.possession.proofs:_check_target",
        old="if not isinstance(shown, str) or not hmac.compare_digest(shown.encode(), digest.encode()):",
        new="if False:",
        rule="A DPoP proof that is sent with an access token must contain the hash of the token.",
        tests=("tests/authapi/possession/test_proofs.py",),
    ),
    Mutant(
        name="authapi-dpop-method",
        at="authapi.possession.proofs:_check_target",
        old='claims.get("htm") != target.method',
        new="False",
        rule="A DPoP proof is valid only for the HTTP method of its request.",
        tests=("tests/authapi/possession/test_proofs.py",),
    ),
    Mutant(
        name="authapi-dpop-address",
        at="authapi.possession.proofs:_check_target",
        old='not _is_address(claims.get("htu"), target)',
        new="False",
        rule="A DPoP proof is valid only for the URL of its request.",
        tests=("tests/authapi/possession/test_proofs.py",),
    ),
    Mutant(
        name="authapi-dpop-age",
        at="authapi.possession.proofs:_checked",
        old="abs(now - issued_at)",
        new="(issued_at - now)",
        rule="A DPoP proof is refused after its lifetime.",
        tests=("tests/authapi/possession/test_proofs.py",),
    ),
    Mutant(
        name="authapi-dpop-private-key",
        at="authapi.possession.proofs:_verified",
        old="not isinstance(jwk, dict) or jwk.keys() & _PRIVATE",
        new="not isinstance(jwk, dict)",
        rule="A DPoP proof that contains a private key is refused.",
        tests=("tests/authapi/possession/test_proofs.py",),
    ),
)
