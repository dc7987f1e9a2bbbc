"""Id tokens of providers. The accepted keys and algorithms do not depend on the token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.id_token import LEEWAY_SECONDS, verified_claims

ISSUER, CLIENT_ID, NONCE = "https://idp.example.test", "a-client", "a-nonce"
# A fixed time instead of the current time: the names of test cases contain the time, and must be equal in all workers.
NOW = 1_800_000_000.0
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
OTHER = RSAKey.generate_key(2048, {"kid": "other"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
GOOD = {"iss": ISSUER, "aud": CLIENT_ID, "sub": "s", "iat": int(NOW), "exp": int(NOW) + 60, "nonce": NONCE}


def public(key: RSAKey | ECKey, **changes: Any) -> dict[str, Any]:
    return {**key.as_dict(private=False), **changes}


def signed(key: RSAKey | ECKey = RSA, algorithm: str = "RS256", header: dict[str, Any] | None = None, **changes: Any) -> str:
    return jwt.encode({"alg": algorithm, "kid": key.kid, **(header or {})}, {**GOOD, **changes}, key, algorithms=[algorithm])


def verify(token: Any, *published: dict[str, Any], fresh: tuple[dict[str, Any], ...] = (), now: float = NOW) -> dict[str, Any]:
    def keys(*, is_key_unknown: bool = False) -> list[dict[str, Any]]:
        return list(fresh if is_key_unknown else published)

    return verified_claims(token, issuer=ISSUER, client_id=CLIENT_ID, nonce=NONCE, access_token=None, keys=keys, now=now)


def by_hand(header: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """Create a token that libraries refuse to create."""
    text = f"{_base64(json.dumps(header).encode())}.{_base64(json.dumps(GOOD).encode())}"
    return f"{text}.{_base64(sign(text.encode()))}"


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def is_refused(token: Any, *published: dict[str, Any]) -> bool:
    with pytest.raises(UpstreamFailed) as failed:
        verify(token, *published)
    return failed.value.case is LoginCase.UPSTREAM_TOKEN_REFUSED


def test_the_published_key_is_not_accepted_as_a_secret() -> None:
    # Algorithm confusion: an attacker makes an HMAC signature, with the public key in place of the secret. Test each encoding of the public
    # key, and the secret of the client.
    pem = RSA.as_pem(private=False)
    der = RSA.public_key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), der, b"client-secret", json.dumps(public(RSA)).encode()):
        forged = by_hand({"alg": "HS256", "kid": "rsa"}, lambda text, secret=secret: hmac.digest(secret, text, hashlib.sha256))  # type: ignore[misc]
        assert is_refused(forged, public(RSA))
        oct_key = {"kty": "oct", "k": _base64(secret), "kid": "rsa"}
        assert is_refused(forged, oct_key, public(RSA))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "HS512", "ES256K", "EdDSA", "RSA1_5", "", None, 5, ["RS256"]])
def test_an_unlisted_algorithm_is_refused(algorithm: Any) -> None:
    assert is_refused(by_hand({"alg": algorithm, "kid": "rsa"}, lambda _text: b""), public(RSA))


def test_an_unsigned_token_is_refused() -> None:
    assert is_refused(by_hand({"alg": "RS256", "kid": "rsa"}, lambda _text: b""), public(RSA))


@pytest.mark.parametrize(
    "header", [{"crit": ["exp"]}, {"crit": ["unknown"], "unknown": 1}, {"b64": False}, {"zip": "DEF"}, {"enc": "A128GCM"}]
)
def test_an_unknown_critical_header_is_refused(header: dict[str, Any]) -> None:
    # CVE-2025-59420 and CVE-2026-32597 describe this defect in other libraries, which ignored an unknown `crit`.
    signer = RSA.private_key

    assert signer is not None
    token = by_hand({"alg": "RS256", "kid": "rsa", **header}, lambda text: signer.sign(text, padding.PKCS1v15(), hashes.SHA256()))
    assert is_refused(token, public(RSA))


def test_a_key_inside_the_token_is_not_used() -> None:
    # CVE-2026-27962 describes this defect in another library.
    attack = signed(OTHER, header={"jwk": public(OTHER), "kid": "rsa"})
    assert is_refused(attack, public(RSA))
    assert is_refused(signed(OTHER, header={"jwk": public(OTHER)}), public(RSA))
    assert is_refused(signed(OTHER, header={"jku": "https://attacker.example.test/jwks", "kid": "rsa"}), public(RSA))


def test_a_key_for_another_purpose_is_not_used() -> None:
    assert is_refused(signed(), public(RSA, use="enc"))
    assert is_refused(signed(), public(RSA, alg="PS256"))
    assert is_refused(signed(EC, "ES256"), public(EC, crv="P-384"))
    assert is_refused(signed(EC, "ES256"), public(RSA, kid="ec"))


@pytest.mark.parametrize("key", [{}, {"kty": "RSA"}, {"kty": "RSA", "n": 5, "e": []}, {"kty": "RSA", "n": "!", "e": "AQAB"}, {"kty": "EC"}])
def test_invalid_keys_of_a_set_are_ignored(key: dict[str, Any]) -> None:
    assert verify(signed(), public(RSA), {**key, "kid": "odd"})["sub"] == "s"
    assert is_refused(signed(), {**key, "kid": "rsa"})


def test_a_token_without_a_key_id_is_accepted_only_if_there_is_a_single_key() -> None:
    token = by_hand_without_id()
    assert verify(token, public(RSA))["sub"] == "s"
    assert verify(token, public(RSA), public(EC))["sub"] == "s"
    assert is_refused(token, public(RSA), public(OTHER))


def by_hand_without_id() -> str:
    return jwt.encode({"alg": "RS256"}, GOOD, RSA, algorithms=["RS256"])


def test_an_unknown_key_id_causes_one_more_fetch_of_the_keys() -> None:
    assert verify(signed(), public(OTHER), fresh=(public(RSA),))["sub"] == "s"


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_signatures_with_an_rsa_key_are_accepted(algorithm: str) -> None:
    assert verify(signed(algorithm=algorithm), public(RSA))["sub"] == "s"


def test_signatures_with_an_elliptic_curve_are_accepted() -> None:
    assert verify(signed(EC, "ES256"), public(RSA), public(EC))["sub"] == "s"


def test_the_allowed_clock_difference_is_limited() -> None:
    assert verify(signed(), public(RSA), now=GOOD["exp"] + LEEWAY_SECONDS - 1)["sub"] == "s"  # type: ignore[operator]
    with pytest.raises(UpstreamFailed):
        verify(signed(), public(RSA), now=GOOD["exp"] + LEEWAY_SECONDS + 1)  # type: ignore[operator]


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another-client"},
        {"aud": "another-client", "azp": CLIENT_ID},
        {"aud": ["another-client"], "azp": CLIENT_ID},
        {"aud": [CLIENT_ID, "another-client"], "azp": "another-client"},
        {"aud": []},
        {"iss": f"{ISSUER}/other"},
        {"nonce": "of another login"},
        {"nonce": ""},
        {"exp": int(NOW) - LEEWAY_SECONDS - 1},
    ],
    ids=str,
)
def test_a_token_for_another_client_or_another_login_or_another_time_is_refused(changes: dict[str, Any]) -> None:
    assert verify(signed(), public(RSA))["sub"] == "s"
    assert is_refused(signed(**changes), public(RSA))
