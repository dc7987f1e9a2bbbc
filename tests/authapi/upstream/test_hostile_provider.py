"""A provider that attacks the service over a real socket. Its answers cannot log a user in, cause an internal error or change a user."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from authapi.models import Session
from identity.models import Tenant
from identity.services.connections import create_connection
from tests.authapi.upstream.refusals import assert_refused, encoded, tokens
from tests.factories.provider import CLIENT_ID, SECRET, Login, provider
from tests.factories.sign_in import people, person

VICTIM = "victim@corp.example.test"


def good_claims(login: Login, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    good = {"iss": login.provider.issuer, "aud": CLIENT_ID, "sub": "248289", "iat": now, "exp": now + 300, "nonce": login.provider.nonce}
    return {**good, "email": VICTIM, "email_verified": True, "name": "Eve", **changes}


# Forged signatures. Some use the published key of the provider as a secret, because an attacker can read this key.


def unsigned(login: Login, algorithm: str) -> str:
    return f"{encoded({'alg': algorithm, 'kid': 'one'})}.{encoded(good_claims(login))}."


def keyed_with(login: Login, secret: bytes, algorithm: str = "HS256") -> str:
    body = f"{encoded({'alg': algorithm, 'kid': 'one'})}.{encoded(good_claims(login))}"
    return f"{body}.{encoded(hmac.new(secret, body.encode(), hashlib.sha256).digest())}"


FORGERIES: dict[str, Callable[[Login], str]] = {
    "alg none": lambda login: unsigned(login, "none"),
    "alg None": lambda login: unsigned(login, "nOnE"),
    "alg empty": lambda login: unsigned(login, ""),
    "public key as PEM": lambda login: keyed_with(login, login.provider.key.as_pem(private=False)),
    "public key as DER": lambda login: keyed_with(login, login.provider.key.as_der(private=False)),
    "public key as JSON": lambda login: keyed_with(login, json.dumps(login.provider.key.as_dict(private=False)).encode()),
    "client secret": lambda login: keyed_with(login, SECRET.encode()),
    "empty secret": lambda login: keyed_with(login, b""),
    "called RS256": lambda login: keyed_with(login, login.provider.key.as_pem(private=False), "RS256"),
    "signature cut off": lambda login: login.provider.id_token().rpartition(".")[0] + ".",
    "signature of another token": lambda login: f"{unsigned(login, 'RS256')}{login.provider.id_token().rpartition('.')[2]}",
    "another payload": lambda login: ".".join([(parts := login.provider.id_token().split("."))[0], encoded(good_claims(login)), parts[2]]),
    "JSON serialization": lambda login: json.dumps({"payload": encoded(good_claims(login)), "signatures": []}),
    "encrypted": lambda _login: ".".join([encoded({"alg": "dir", "enc": "A128GCM"}), "", "x", "y", "z"]),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_id_token_is_refused(login: Login, forge: Callable[[Login], str]) -> None:
    sent = login.leave()
    login.provider.answers["/token"] = tokens(forge(login))
    assert_refused(login, login.come_back(sent))


@pytest.mark.parametrize(
    "kid",
    ["two", "", 1, None, True, ["one"], {"kid": "one"}, "../../../../dev/null", "one' OR 'a'='a", "http://127.0.0.1/jwks", "k" * 8000],
)
def test_a_key_id_selects_only_among_the_published_keys(login: Login, kid: Any) -> None:
    stranger = RSAKey.generate_key(2048, {"kid": "one"})
    sent = login.leave()
    login.provider.published = [login.provider.key, RSAKey.generate_key(2048, {"kid": "other"})]
    body = f"{encoded({'alg': 'RS256', 'kid': kid})}.{encoded(good_claims(login))}"
    login.provider.answers["/token"] = tokens(f"{body}.{login.provider.id_token().rpartition('.')[2]}")
    assert stranger.kid == login.provider.key.kid
    assert_refused(login, login.come_back(sent))
    assert set(login.provider.paths) <= {"/.well-known/openid-configuration", "/token", "/jwks"}


def test_two_keys_with_one_id_are_refused(login: Login) -> None:
    sent = login.leave()
    login.provider.published = [login.provider.key, RSAKey.generate_key(2048, {"kid": "one"})]
    assert_refused(login, login.come_back(sent))


def test_a_short_key_is_refused(login: Login) -> None:
    # RFC 7518, 3.3 requires at least 2048 bits, because short keys can be factored: a key of 512 bits within hours.
    with warnings.catch_warnings(action="ignore"):
        short = RSAKey.generate_key(1024, {"kid": "short"}, auto_kid=False)
    sent = login.leave()
    login.provider.key, login.provider.published = short, [short]
    assert_refused(login, login.come_back(sent))


# Answers that belong to another login or provider.


def test_the_nonce_of_another_login_in_the_same_browser_is_refused(login: Login) -> None:
    first = login.leave()
    nonce = login.provider.nonce
    second = login.leave()
    assert first["state"] != second["state"]
    login.provider.nonce = nonce
    assert_refused(login, login.come_back(second))


def test_each_of_two_states_keeps_its_own_verifier(login: Login) -> None:
    first, second = login.leave(), login.leave()
    login.come_back(second)
    challenge = encoded(hashlib.sha256(login.provider.token_form()["code_verifier"].encode()).digest())
    assert challenge == second["code_challenge"]
    assert challenge != first["code_challenge"]


def test_a_code_is_sent_only_to_the_provider_of_its_state(login: Login, tenant: Tenant) -> None:
    with provider() as honest:
        options = {"client_id": CLIENT_ID, "client_secret": "secret-at-the-honest-one", "issuer": honest.issuer}
        create_connection(tenant_id=tenant.pk, name="honest", strategy="oidc", enabled_clients=[login.client.client_id], options=options)
        sent = login.leave()
        # The hostile provider redirects the browser to the honest provider, which answers with its own issuer.
        assert_refused(login, login.come_back(sent, code="code-of-the-honest-one", iss=honest.issuer))
        assert "/token" not in login.provider.paths
        assert honest.paths == []


def test_an_elliptic_curve_key_on_another_curve_is_not_used(login: Login) -> None:
    other = ECKey.generate_key("P-521", {"kid": "one", "alg": "ES256"})
    sent = login.leave()
    login.provider.published = [other]  # type: ignore[list-item]  # a key like any other
    login.provider.answers["/token"] = tokens(
        ".".join([encoded({"alg": "ES256", "kid": "one"}), encoded(good_claims(login)), encoded(b"s" * 64)])
    )
    assert_refused(login, login.come_back(sent))


# Claims.


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": ["https://a.test", "https://b.test"]},
        {"aud": {"0": CLIENT_ID}},
        {"aud": [[CLIENT_ID]]},
        {"aud": []},
        {"nonce": ["x"]},
        {"nonce": ""},
        {"exp": "9999999999"},
        {"exp": []},
        {"exp": -1},
        {"iat": {}},
        {"iat": "now"},
        {"nbf": "tomorrow"},
        {"sub": ["248289"]},
        {"sub": {"a": 1}},
        {"sub": "a\x00b"},
        {"sub": " 248289"},
        {"sub": "a|b\n"},
        {"azp": ["x"]},
        {"at_hash": 5},
        {"auth_time": "x"},
    ],
    ids=ascii,
)
def test_a_claim_of_the_wrong_type_is_refused(login: Login, changes: dict[str, Any]) -> None:
    sent = login.leave()
    login.provider.changes = changes
    assert_refused(login, login.come_back(sent))


@pytest.mark.parametrize("sub", ["someone-else", None, "", 248289, ["248289"], "248289 "])
def test_a_userinfo_response_for_another_subject_is_refused(login: Login, sub: Any) -> None:
    sent = login.leave()
    login.provider.changes = {"name": None}
    login.provider.userinfo = {"sub": sub, "email": VICTIM, "email_verified": True, "name": "Victim"}
    assert_refused(login, login.come_back(sent))


def test_a_claimed_email_address_gives_no_access_to_an_account_of_another_connection(login: Login, tenant: Tenant) -> None:
    victim = person(people(tenant, login.client, name="people"), email=VICTIM)
    login.provider.claims = {"email": VICTIM, "email_verified": True, "sub": victim.identifier}
    told = login.log_in()
    assert "code" in told
    assert Session.objects.of(tenant.pk).get().user_id != victim.pk
    victim.refresh_from_db()
    assert victim.connection.name == "people"
