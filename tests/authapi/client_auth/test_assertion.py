"""`private_key_jwt`: the requirements of an assertion. Each assertion is accepted once."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from django.db import connections
from joserfc.jwk import RSAKey

from authapi.client_auth import clients
from authapi.client_auth.assertion import ASSERTION_TYPE
from authapi.client_auth.replays import use_once
from authapi.client_auth.signatures import ALGORITHMS
from authapi.expiry import drop_ended
from authapi.models import ClientCredential, UsedAssertion
from authapi.services.client_credentials import NewCredential, create_credential, delete_credential
from authapi.services.clients import update_client
from authapi.tokens.keys import trust
from identity.models import Tenant
from identity.services.domains import add_domain, verify_domain
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import Received, ask_token
from tests.authapi.assertions import Signer, private_key, public_pem, signer
from tests.factories.authapi import granted_client, host_of

UNAUTHORIZED = (401, {"error": "access_denied", "error_description": "Unauthorized"})


def ask(client: Signer, assertion: str, **changes: Any) -> Received:
    return ask_token(client.tenant, client.form(assertion, **changes))


def answer(client: Signer, assertion: str, **changes: Any) -> tuple[int, Any]:
    received = ask(client, assertion, **changes)
    return received.status, received.json()


def test_an_assertion_is_accepted_once(tenant: Tenant) -> None:
    client = signer(tenant)
    assertion = client.assertion()
    assert ask(client, assertion).status == 200
    assert answer(client, assertion) == UNAUTHORIZED


def test_only_one_of_several_simultaneous_uses_of_an_assertion_succeeds(tenant: Tenant) -> None:
    until = time.time() + 60
    start, won = threading.Barrier(6), []

    def use() -> None:
        start.wait(10)
        won.append(use_once(tenant_id=tenant.pk, client_id="Abc", jti="one", until=until))
        connections.close_all()

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(won) == [False] * 5 + [True]


def test_the_same_jti_is_accepted_from_another_client(tenant: Tenant) -> None:
    until = time.time() + 60
    assert use_once(tenant_id=tenant.pk, client_id="Abc", jti="one", until=until)
    assert use_once(tenant_id=tenant.pk, client_id="Abd", jti="one", until=until)


def test_a_used_assertion_is_remembered_until_it_expires(tenant: Tenant) -> None:
    client = signer(tenant)
    with time_machine.travel(datetime(2031, 5, 1, 12, tzinfo=UTC), tick=False) as clock:
        assertion = client.assertion(exp=int(time.time()) + 60)
        assert ask(client, assertion).status == 200
        clock.shift(timedelta(seconds=69))
        drop_ended()
        assert answer(client, assertion) == UNAUTHORIZED
        assert UsedAssertion.objects.of(tenant.pk).count() == 1
        clock.shift(timedelta(seconds=2))
        drop_ended()
        assert UsedAssertion.objects.of(tenant.pk).count() == 0
        assert answer(client, assertion) == UNAUTHORIZED


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"exp": None}, "no expiry"),
        ({"exp": "soon"}, "an expiry that is not a time"),
        ({"exp": True}, "an expiry that is not a time"),
        ({"jti": None}, "no jti"),
        ({"jti": ""}, "no jti"),
        ({"jti": "j" * 65}, "a long jti"),
        ({"jti": 5}, "a jti that is not a text"),
        ({"iss": "Somebody"}, "another issuer"),
        ({"iss": None}, "no issuer"),
        ({"aud": None}, "no audience"),
        ({"aud": "https://elsewhere.example.test/"}, "another service"),
        ({"aud": []}, "no audience"),
        ({"nbf": "now"}, "a start that is not a time"),
    ],
)
def test_an_invalid_claim_is_refused_like_a_wrong_secret(tenant: Tenant, changes: dict[str, Any], why: str) -> None:
    client = signer(tenant)
    assert answer(client, client.assertion(**changes)) == UNAUTHORIZED, why


@pytest.mark.parametrize("path", ["oauth/token", "", "api/v2/"])
def test_only_the_issuer_is_accepted_as_audience(tenant: Tenant, path: str) -> None:
    client = signer(tenant)
    issuer = host_of(tenant).issuer
    if path:
        assert answer(client, client.assertion(aud=issuer + path)) == UNAUTHORIZED
    assert answer(client, client.assertion(aud=[issuer, f"https://elsewhere.example.test/{path}"])) == UNAUTHORIZED
    assert answer(client, client.assertion(aud=issuer.removesuffix("/"))) == UNAUTHORIZED


@pytest.mark.parametrize("shift", [{"exp": -11}, {"exp": 311}, {"iat": 11}, {"nbf": 11}])
def test_times_outside_the_skew_are_refused(tenant: Tenant, shift: dict[str, int]) -> None:
    client = signer(tenant)
    with time_machine.travel(datetime(2031, 5, 1, 12, tzinfo=UTC), tick=False):
        times: dict[str, Any] = {name: int(time.time()) + seconds for name, seconds in shift.items()}
        assert answer(client, client.assertion(**times)) == UNAUTHORIZED


@pytest.mark.parametrize("shift", [{"exp": -9}, {"exp": 300}, {"iat": 9}, {"nbf": 9}])
def test_times_within_the_skew_are_accepted(tenant: Tenant, shift: dict[str, int]) -> None:
    client = signer(tenant)
    with time_machine.travel(datetime(2031, 5, 1, 12, tzinfo=UTC), tick=False):
        times: dict[str, Any] = {name: int(time.time()) + seconds for name, seconds in shift.items()}
        assert ask(client, client.assertion(**times)).status == 200


def test_a_signature_of_another_key_is_refused(tenant: Tenant) -> None:
    client = signer(tenant)
    assert answer(client, client.assertion(key="another")) == UNAUTHORIZED


@pytest.mark.parametrize("algorithm", ["RS384", "PS256", "RS512", "PS512"])
def test_an_algorithm_other_than_that_of_the_key_is_refused(tenant: Tenant, algorithm: str) -> None:
    client = signer(tenant)
    assert answer(client, client.assertion(algorithm=algorithm)) == UNAUTHORIZED


def test_the_public_key_is_not_accepted_as_a_secret(tenant: Tenant) -> None:
    # Algorithm confusion: HS256 with the text of the public key as its secret.
    client = signer(tenant)
    header = _base64(b'{"alg":"HS256"}')
    signed = f"{header}.{client.assertion().split('.')[1]}"
    for secret in (public_pem().encode(), public_pem().strip().encode()):
        # Signed by hand, because libraries refuse to sign with a public key.
        forged = f"{signed}.{_base64(hmac.digest(secret, signed.encode(), 'sha256'))}"
        assert answer(client, forged) == UNAUTHORIZED


def test_an_unsigned_assertion_is_refused(tenant: Tenant) -> None:
    client = signer(tenant)
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    payload = client.assertion().split(".")[1]
    assert answer(client, f"{header}.{payload}.") == UNAUTHORIZED
    assert answer(client, f"{header}.{payload}.{client.assertion().split('.')[2]}") == UNAUTHORIZED


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"], "exp": 1},
        {"b64": False, "crit": ["b64"]},
        {"jku": "https://elsewhere.example.test/jwks"},
        {"x5u": "https://elsewhere.example.test/certificate"},
        {"typ": "at+jwt"},
        {"typ": "dpop+jwt"},
    ],
)
def test_a_header_with_unsupported_members_is_refused(tenant: Tenant, header: dict[str, Any]) -> None:
    client = signer(tenant)
    assert answer(client, _signed(client, header)) == UNAUTHORIZED


def test_a_key_in_the_header_of_an_assertion_is_never_used(tenant: Tenant) -> None:
    # CVE-2026-27962 and CVE-2026-48523 are this defect in other libraries: the attacker sends the key in the header.
    client = signer(tenant)
    own = RSAKey.import_key(private_key("another")).as_dict(private=False)
    assert answer(client, _signed(client, {"jwk": own}, key="another")) == UNAUTHORIZED
    assert answer(client, _signed(client, {"jwk": own, "kid": client_kid(client)}, key="another")) == UNAUTHORIZED


@pytest.mark.parametrize("typ", ["JWT", "client-authentication+jwt"])
def test_a_known_type_of_assertion_is_accepted(tenant: Tenant, typ: str) -> None:
    client = signer(tenant)
    assert ask(client, client.assertion(header={"typ": typ})).status == 200


@pytest.mark.parametrize("assertion", ["x", "a.b", "a.b.c.d", "!.!.!", "e30.e30.e30", "bnVsbA.W10.x", "e30." + "e30" * 3])
def test_a_malformed_assertion_is_refused(tenant: Tenant, assertion: str) -> None:
    client = signer(tenant)
    assert answer(client, assertion) == UNAUTHORIZED


def test_a_long_assertion_is_refused_before_it_is_parsed(tenant: Tenant) -> None:
    client = signer(tenant)
    status, body = answer(client, client.assertion(padding="p" * 2048))
    assert (status, body["error"]) == (400, "invalid_request")
    assert "2048 bytes" in body["error_description"]


def test_another_assertion_type_is_refused(tenant: Tenant) -> None:
    client = signer(tenant)
    for kind in ("urn:ietf:params:oauth:client-assertion-type:saml2-bearer", None):
        status, body = answer(client, client.assertion(), client_assertion_type=kind)
        assert (status, body["error"]) == (400, "invalid_request")
    status, body = answer(client, client.assertion(), client_assertion=None)
    assert (status, body["error_description"]) == (400, "Missing required parameter: client_assertion")


def test_an_assertion_together_with_a_secret_is_an_invalid_request(tenant: Tenant) -> None:
    client = signer(tenant)
    status, body = answer(client, client.assertion(), client_secret=client.registered.client.client_id)
    assert (status, body["error"]) == (400, "invalid_request")


def test_a_client_id_that_differs_from_the_assertion_is_an_invalid_request(tenant: Tenant) -> None:
    client = signer(tenant)
    assert answer(client, client.assertion(), client_id="Another")[0] == 400


def test_an_unknown_client_is_refused_like_a_wrong_key(tenant: Tenant) -> None:
    client = signer(tenant)
    unknown = client.assertion(iss="Nobody", sub="Nobody")
    assert answer(client, unknown, client_id="Nobody") == UNAUTHORIZED


def test_a_client_of_another_tenant_is_unknown(tenant: Tenant) -> None:
    client = signer(tenant)
    name = f"t-{secrets.token_hex(6)}"
    other = create_tenant(tenant_id=name, name=name, host=f"{name}.example.test")
    assertion = client.assertion(aud=host_of(other).issuer)
    assert ask_token(other, client.form(assertion)).status == 401


def test_failed_authentications_are_counted_for_the_ip_address(tenant: Tenant, settings: Any) -> None:
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 2
    client = signer(tenant)
    with time_machine.travel(datetime(2031, 5, 1, 12, tzinfo=UTC)):
        statuses = [ask(client, client.assertion(key="another")).status for _ in range(3)]
    assert statuses == [401, 401, 429]


def test_the_secret_of_a_client_with_keys_is_not_accepted(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem(), algorithm="RS256")
    credential = create_credential(tenant_id=tenant.pk, client_id=registered.client_id, new=new)
    client = Signer(tenant, registered)
    with_secret = client.form("", client_assertion=None, client_assertion_type=None, client_secret=registered.secret)
    assert ask_token(tenant, with_secret).status == 200
    assert ask(client, client.assertion()).status == 401
    methods = {"private_key_jwt": {"credentials": [{"id": credential.pk}]}}
    changes = {"settings": {"client_authentication_methods": methods}}
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes=changes)
    assert ask_token(tenant, with_secret).status == 401
    assert ask(client, client.assertion()).status == 200


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_works_with_a_key_that_is_registered_for_it(tenant: Tenant, algorithm: str) -> None:
    client = signer(tenant, algorithm=algorithm)
    assert ask(client, client.assertion(algorithm=algorithm)).status == 200


def test_a_client_can_use_either_of_its_two_keys_even_without_a_key_id(tenant: Tenant) -> None:
    client = signer(tenant, keys=("first", "second"))
    kids = dict(ClientCredential.objects.of(tenant.pk).values_list("name", "kid"))
    for key in ("first", "second"):
        assert ask(client, client.assertion(key=key)).status == 200
        assert ask(client, client.assertion(key=key, header={"kid": kids[key]})).status == 200
    assert answer(client, client.assertion(key="first", header={"kid": kids["second"]})) == UNAUTHORIZED
    assert answer(client, client.assertion(key="first", header={"kid": "unknown"})) == UNAUTHORIZED


def test_assertions_of_a_deleted_key_and_the_tokens_issued_for_them_are_refused(tenant: Tenant) -> None:
    client = signer(tenant, keys=("first", "second"))
    assert ask(client, client.assertion()).status == 200
    version = client.registered.client.auth_version
    first = ClientCredential.objects.of(tenant.pk).get(name="first")
    delete_credential(tenant_id=tenant.pk, client_id=client.registered.client_id, credential_id=first.pk, even_used=True)
    assert answer(client, client.assertion()) == UNAUTHORIZED
    assert ask(client, client.assertion(key="second")).status == 200
    client.registered.client.refresh_from_db()
    assert client.registered.client.auth_version > version


def test_an_expired_key_is_refused(tenant: Tenant) -> None:
    client = signer(tenant)
    ends = datetime.now(UTC) + timedelta(days=1)
    ClientCredential.objects.of(tenant.pk).update(expires_at=ends)
    assert ask(client, client.assertion()).status == 200
    with time_machine.travel(ends + timedelta(seconds=1)):
        assert answer(client, client.assertion()) == UNAUTHORIZED


def test_an_expired_key_is_refused_while_the_client_is_still_cached(tenant: Tenant) -> None:
    client = signer(tenant)
    ends = datetime.now(UTC) + timedelta(days=1)
    ClientCredential.objects.of(tenant.pk).update(expires_at=ends)
    remembered = clients.get((tenant.pk, client.registered.client.client_id))
    assert [credential.kid for credential in remembered.active_credentials] == [client_kid(client)]
    with time_machine.travel(ends + timedelta(seconds=1)):
        assert remembered.active_credentials == ()


def test_the_issuer_of_another_domain_of_the_tenant_is_accepted_as_audience(tenant: Tenant) -> None:
    client = signer(tenant)
    domain = add_domain(tenant_id=tenant.pk, host=f"login.{tenant.pk}.example.test")
    other = host_of(tenant).issuer.replace(tenant.pk, f"login.{tenant.pk}")
    assert answer(client, client.assertion(aud=other)) == UNAUTHORIZED
    verify_domain(tenant_id=tenant.pk, domain_id=domain.pk)
    trust.clear()
    for audience in (other, [host_of(tenant).issuer]):
        assert ask(client, client.assertion(aud=audience)).status == 200


def test_the_request_may_omit_the_client_id_and_have_a_json_body(tenant: Tenant) -> None:
    client = signer(tenant)
    assert ask(client, client.assertion(), client_id=None).status == 200
    assert ask_token(tenant, client.form(client.assertion()), as_json=True).status == 200
    assert client.form("")["client_assertion_type"] == ASSERTION_TYPE


def client_kid(client: Signer) -> str:
    return ClientCredential.objects.of(client.tenant.pk).get().kid


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _signed(client: Signer, header: dict[str, Any], *, key: str = "first") -> str:
    """Sign by hand, because libraries refuse to create such headers."""
    signed = f"{_base64(json.dumps({'alg': 'RS256', **header}).encode())}.{client.assertion().split('.')[1]}"
    return f"{signed}.{_base64(private_key(key).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
