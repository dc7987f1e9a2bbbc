"""Signed authorization requests (RFC 9101): accepted signatures, every rule about claims, and requests that are sent again."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
import time_machine
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.client_auth.remote_keys import remote_keys
from authapi.models import Client, ClientCredential
from authapi.services.api_resources import create_api_resource
from authapi.services.client_credentials import NewCredential, change_credential, create_credential
from authapi.services.clients import create_client, update_client
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Tenant
from identity.services.failures import Invalid
from identity.services.tenants import create_tenant
from tests.authapi.assertions import private_key, public_pem
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login
from tests.authapi.memory import forget_all
from tests.authapi.pushing import Pusher
from tests.factories.sign_in import CALLBACK, people, person, web_client

ADDRESS = "https://evil.test/keys"


@pytest.fixture
def pusher(tenant: Tenant) -> Pusher:
    client, secret = web_client(tenant)
    return Pusher(tenant, client, secret)


@pytest.fixture
def login(tenant: Tenant, pusher: Pusher) -> Login:
    register(pusher.client)
    connection = people(tenant, pusher.client)
    return Login(tenant, pusher.client, connection, person(connection), Browser(tenant))


def register(client: Client, *, key: str = "first", algorithm: str = "RS256", required: bool = False) -> ClientCredential:
    """Register this key for signed requests of a client. With `required`, the client must sign its requests."""
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem(key), algorithm=algorithm)
    credential = create_credential(tenant_id=client.tenant_id, client_id=client.client_id, new=new)
    signed = {"required": required, "credentials": [{"id": credential.pk}]}
    update_client(tenant_id=client.tenant_id, client_id=client.client_id, changes={"settings": {"signed_request_object": signed}})
    forget_all()
    return credential


def request_object(
    login: Login, *, key: str = "first", algorithm: str = "RS256", header: dict[str, Any] | None = None, **changes: Any
) -> str:
    """Return a signed request of the client. `changes` overrides its claims; None removes a claim."""
    now = int(time.time())
    good = {
        "iss": login.client.client_id,
        "aud": login.issuer,
        "client_id": login.client.client_id,
        "response_type": "code",
        "redirect_uri": CALLBACK,
        "scope": "openid",
        "state": "signed-state",
        "iat": now,
        "nbf": now,
        "exp": now + 120,
        "jti": secrets.token_urlsafe(12),
    }
    claims = {name: value for name, value in (good | changes).items() if value is not None}
    sent = {"alg": algorithm, "typ": "oauth-authz-req+jwt", **(header or {})}
    return jwt.encode(sent, claims, RSAKey.import_key(private_key(key)), algorithms=[algorithm])


def go(login: Login, token: str, **changes: Any) -> Page:
    sent = {"client_id": login.client.client_id, "request": token, **changes}
    return login.browser.get("/authorize", {name: value for name, value in sent.items() if value is not None})


def refused(page: Page) -> str:
    """Return the error text of a page that refuses a request object."""
    assert (page.status, "location" in page.headers) == (400, False)
    assert "invalid_request_object" in page.text
    return page.text


# --- Accepted requests --------------------------------------------------------------------------------------------------------


def test_a_login_uses_only_the_signed_parameters(login: Login) -> None:
    beside = {"redirect_uri": "https://evil.test/", "state": "other", "response_type": "token", "prompt": "none"}
    answer = login.log_in(go(login, request_object(login), **beside)).answer
    assert ("code" in answer, answer["state"]) == (True, "signed-state")


def test_a_parameter_outside_the_request_object_is_ignored(login: Login) -> None:
    answer = login.log_in(go(login, request_object(login, state=None), state="outside")).answer
    assert "state" not in answer


@pytest.mark.parametrize("algorithm", ["RS384", "PS256"])
def test_each_algorithm_works_with_a_key_that_is_registered_for_the_algorithm(login: Login, algorithm: str) -> None:
    register(login.client, key="second", algorithm=algorithm)
    assert "code" in login.log_in(go(login, request_object(login, key="second", algorithm=algorithm))).answer
    assert "signature" in refused(go(login, request_object(login, key="second", algorithm="RS256")))


@pytest.mark.parametrize("kind", ["jwt", "JWT", "oauth-authz-req+jwt"])
def test_each_jwt_type_is_accepted(login: Login, kind: str) -> None:
    assert go(login, request_object(login, header={"typ": kind})).status == 302


def test_optional_claims_may_be_missing(login: Login) -> None:
    assert go(login, request_object(login, iat=None, nbf=None, exp=None, jti=None)).status == 302


# --- Refused requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"iss": "another"}, "Its iss"),
        ({"iss": None}, "Its iss"),
        ({"client_id": "another"}, "Its client_id"),
        ({"client_id": None}, "Its client_id"),
        ({"aud": "https://elsewhere.test/"}, "Its aud"),
        ({"aud": None}, "Its aud"),
        ({"aud": ["https://elsewhere.test/", "http://x.example.test/"]}, "Its aud"),
        ({"aud": []}, "Its aud"),
        ({"response_type": None}, "response_type"),
        ({"response_type": ["code"]}, "response_type"),
        ({"exp": 1}, "It has expired"),
        ({"exp": "9999999999"}, "Its exp"),
        ({"nbf": 9_999_999_999}, "Its nbf"),
        ({"iat": 9_999_999_999}, "Its iat"),
        ({"iat": True}, "Its iat"),
        ({"jti": ""}, "Its jti"),
        ({"jti": "j" * 65}, "Its jti"),
        ({"jti": 7}, "Its jti"),
        ({"request": "x.y.z"}, "must not contain request or request_uri"),
        ({"request_uri": "urn:ietf:params:oauth:request_uri:x"}, "must not contain request or request_uri"),
    ],
)
def test_the_refusal_names_an_invalid_claim(login: Login, changes: dict[str, Any], text: str) -> None:
    assert text in refused(go(login, request_object(login, **changes)))


def test_the_issuer_may_be_one_of_several_audiences_and_every_audience_must_be_text(login: Login) -> None:
    assert go(login, request_object(login, aud=["https://elsewhere.test/", login.issuer])).status == 302
    assert "Its aud" in refused(go(login, request_object(login, aud=[login.issuer, 7])))


def test_an_assertion_for_client_authentication_is_refused(login: Login) -> None:
    assert "Its sub" in refused(go(login, request_object(login, sub=login.client.client_id)))


@pytest.mark.parametrize(
    "header",
    [{"typ": "dpop+jwt"}, {"typ": 7}, {"jwk": {"kty": "RSA"}}, {"jku": ADDRESS}, {"x5u": ADDRESS}, {"crit": ["exp"]}, {"kid": "unknown"}],
)
def test_a_header_with_unsupported_members_is_refused(login: Login, header: dict[str, Any]) -> None:
    refused(go(login, forged(request_object(login), **header)))


def forged(token: str, **changes: Any) -> str:
    """Return the token with a different header and a valid signature, so that only the header can cause a refusal."""
    payload = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    header = {"alg": "RS256", "typ": "jwt", **changes}
    encoded = ".".join(_part(part) for part in (header, payload))
    signature = private_key("first").sign(encoded.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{encoded}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def test_the_forging_function_without_changes_returns_an_accepted_token(login: Login) -> None:
    assert go(login, forged(request_object(login))).status == 302


def test_an_unsigned_request_is_refused(login: Login) -> None:
    payload = request_object(login).split(".")[1]
    assert "Its alg" in refused(go(login, f"{_part({'alg': 'none', 'typ': 'jwt'})}.{payload}."))


def test_the_public_key_and_the_client_secret_are_not_accepted_as_shared_secrets(login: Login, pusher: Pusher) -> None:
    signed = f"{_part({'alg': 'HS256', 'typ': 'jwt'})}.{request_object(login).split('.')[1]}"
    for secret in (public_pem("first"), pusher.secret):
        signature = hmac.digest(secret.encode(), signed.encode(), "sha256")
        token = f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
        assert "Its alg" in refused(go(login, token))


@pytest.mark.parametrize("token", ["x", "a.b", "a.b.c", "....", "e30.e30.", "W10.W10.x"])
def test_a_malformed_jwt_is_refused(login: Login, token: str) -> None:
    refused(go(login, token))


def test_a_signature_of_another_key_is_refused(login: Login) -> None:
    assert "signature" in refused(go(login, request_object(login, key="second")))


def test_an_expired_key_and_a_key_for_assertions_are_refused(login: Login) -> None:
    key = ClientCredential.objects.of(login.tenant.pk).get()
    soon = datetime.now(UTC) + timedelta(seconds=30)
    change_credential(tenant_id=login.tenant.pk, client_id=login.client.client_id, credential_id=key.pk, expires_at=soon)
    forget_all()
    with time_machine.travel(soon + timedelta(seconds=1), tick=False):
        assert "signature" in refused(go(login, request_object(login)))
    update_client(tenant_id=login.tenant.pk, client_id=login.client.client_id, changes={"settings": {"signed_request_object": None}})
    forget_all()
    assert "signature" in refused(go(login, request_object(login)))


def test_a_request_of_another_client_is_refused(login: Login) -> None:
    other, _ = web_client(login.tenant, name="Other")
    register(other, key="second")
    theirs = Login(login.tenant, other, login.connection, login.user, login.browser)
    token = request_object(theirs, key="second")
    refused(go(login, token))
    assert go(theirs, token).status == 302
    # The first client cannot use the key of the other client.
    refused(go(login, request_object(login, key="second")))


def test_a_request_for_another_tenant_is_refused(login: Login) -> None:
    name = f"t-{secrets.token_hex(6)}"
    create_tenant(tenant_id=name, name=name, host=f"{name}.example.test")
    assert "Its aud" in refused(go(login, request_object(login, aud=f"http://{name}.example.test/")))


# --- Replays ------------------------------------------------------------------------------------------------------------------


def test_a_jti_is_accepted_for_one_answer(login: Login) -> None:
    token = request_object(login)
    first, second = go(login, token), go(login, token)
    assert "code" in login.log_in(first).answer
    assert login.log_in(second).answer["error"] == "invalid_request_object"
    assert "Its jti was used before" in refused(go(login, token))
    assert go(login, request_object(login)).status == 302


def test_the_same_jti_is_accepted_from_another_client(login: Login) -> None:
    other, _ = web_client(login.tenant, name="Other")
    register(other, key="second")
    login.connection.enabled_clients = [login.client.client_id, other.client_id]
    login.connection.save()
    assert "code" in login.log_in(go(login, request_object(login, jti="same"))).answer
    theirs = Login(login.tenant, other, login.connection, login.user, login.browser)
    assert go(theirs, request_object(theirs, key="second", jti="same")).status == 302


# --- Pushed request objects, and clients that must sign ------------------------------------------------------------------------


def test_parameters_beside_a_pushed_request_object_are_ignored(login: Login, pusher: Pusher) -> None:
    uri = pusher.handle(request=request_object(login), redirect_uri="https://evil.test/", state="outside")
    page = login.browser.get("/authorize", {"client_id": login.client.client_id, "request_uri": uri})
    answer = login.log_in(page).answer
    assert ("code" in answer, answer["state"]) == (True, "signed-state")


@pytest.mark.parametrize("changes", [{"iss": "another"}, {"aud": "https://elsewhere.test/"}, {"redirect_uri": "https://evil.test/"}])
def test_the_same_rules_apply_to_a_pushed_request_object(login: Login, pusher: Pusher, changes: dict[str, Any]) -> None:
    answer = pusher.push(request=request_object(login, **changes))
    assert answer.status == 400


def test_a_jti_can_be_pushed_once(login: Login, pusher: Pusher) -> None:
    token = request_object(login)
    assert pusher.push(request=token).status == 201
    assert pusher.push(request=token).json()["error"] == "invalid_request_object"
    refused(go(login, token))


def test_a_client_that_must_sign_cannot_send_unsigned_requests(login: Login, pusher: Pusher) -> None:
    signed = {**Client.objects.of(login.tenant.pk).get(pk=login.client.pk).settings["signed_request_object"], "required": True}
    update_client(tenant_id=login.tenant.pk, client_id=login.client.client_id, changes={"settings": {"signed_request_object": signed}})
    forget_all()
    assert "signed request objects" in login.ask().answer["error_description"]
    assert "signed request objects" in login.ask(**{":signed": "1 x"}).answer["error_description"]
    assert "signed request objects" in pusher.push().json()["error_description"]
    assert go(login, request_object(login)).status == 302
    assert pusher.push(request=request_object(login)).status == 201


def test_a_request_object_and_a_request_uri_together_are_refused(login: Login, pusher: Pusher) -> None:
    page = go(login, request_object(login), request_uri=pusher.handle())
    assert (page.status, "Send only one of" in page.text) == (400, True)


def test_a_client_without_keys_cannot_be_required_to_sign(tenant: Tenant) -> None:
    with pytest.raises(Invalid):
        create_client(tenant_id=tenant.pk, name="x", settings={"signed_request_object": {"required": True, "credentials": []}})


# --- Keys that the client publishes -------------------------------------------------------------------------------------------


@pytest.fixture
def key_server() -> Iterator[ThreadingHTTPServer]:
    published = RSAKey.import_key(private_key("second")).as_dict(private=False) | {"use": "sig", "kid": "published"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps({"keys": [published]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()
    remote_keys.clear()


def test_a_published_key_verifies_requests(login: Login, pusher: Pusher, key_server: ThreadingHTTPServer) -> None:
    address = f"http://127.0.0.1:{key_server.server_port}/keys"
    update_client(tenant_id=login.tenant.pk, client_id=login.client.client_id, changes={"settings": {"jwks_uri": address}})
    forget_all()
    named: dict[str, Any] = {"header": {"kid": "published"}}
    assert go(login, request_object(login, key="second", **named)).status == 302
    assert pusher.push(request=request_object(login, key="second", algorithm="PS256", **named)).status == 201
    assert "signature" in refused(go(login, request_object(login, key="third", **named)))


def test_unavailable_keys_cause_a_temporary_error(login: Login, pusher: Pusher, key_server: ThreadingHTTPServer) -> None:
    address = f"http://127.0.0.1:{key_server.server_port}/keys"
    key_server.shutdown()
    key_server.server_close()
    update_client(tenant_id=login.tenant.pk, client_id=login.client.client_id, changes={"settings": {"jwks_uri": address}})
    forget_all()
    answer = pusher.push(request=request_object(login, key="second"))
    assert (answer.status, answer.json()["error"], answer.headers["retry-after"]) == (503, "temporarily_unavailable", "2")
    assert go(login, request_object(login)).status == 302, "a request that is signed with a registered key was refused"


def test_json_members_of_the_request_object_are_json_objects_and_not_texts(login: Login) -> None:
    update_tenant_settings(tenant_id=login.tenant.pk, changes={"resource_parameter_profile": "compatibility"})
    types = {"authorization_details": [{"type": "payment", "sentence": "Pay {amount}."}]}
    create_api_resource(tenant_id=login.tenant.pk, identifier="urn:bank", settings=types)
    forget_all()
    details, claims = [{"type": "payment", "amount": 7}], {"id_token": {"name": None}}
    signed = request_object(login, authorization_details=details, claims=claims, resource=["urn:bank"])
    # Parameters outside the request object, such as a higher amount or another claim, are ignored.
    beside = {"authorization_details": json.dumps([{"type": "payment", "amount": 8}]), "claims": "[]"}
    page = login.browser.follow(login.log_in(go(login, signed, **beside)))
    assert "Pay <strong><bdi>7</bdi></strong>." in page.body.decode()
    assert "code" in login.browser.submit(page, answer="allow").answer
    several = go(login, request_object(login, resource=["urn:bank", "urn:other"]))
    assert several.answer["error"] == "invalid_target"
    wrong = go(login, request_object(login, authorization_details=[{"type": "unknown"}], resource="urn:bank"))
    assert wrong.answer["error"] == "invalid_authorization_details"
