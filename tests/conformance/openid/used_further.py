"""Uses the members of the discovery document that concern devices, token exchange, registration, introspection and sessions.

There is one function per member. Each function raises an error for an unknown value.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import Any

from django.core import mail
from joserfc import jwt

from authapi.models import ApiResource
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from authapi.services.resource_changes import update_api_resource
from authapi.upstream.people import user_of
from authapi.upstream.proven import Proven
from identity.models import Connection, Job, User
from identity.services.connections import create_connection
from identity.services.jobs import run_job
from tests.authapi.memory import forget_all
from tests.conformance.openid.provider import EMAIL, Provider
from tests.conformance.openid.relying_party import LOGGED_OUT, good_tokens, new_party
from tests.conformance.openid.used_tokens import API, Machine, api
from tests.factories.provider import _SIGNING, CLIENT_ID, SECRET
from tests.factories.scim import misbehaving_server, reply
from tests.factories.sign_in import PASSWORD

CIBA = "urn:openid:params:grant-type:ciba"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
NEXT_API = "https://next.example.test/"
DETAIL = {"type": "payment", "amount": 12}
TYPE = {
    "type": "payment",
    "title": "Payment",
    "sentence": "Pay {amount}.",
    "schema": {
        "type": "object",
        "properties": {"type": {}, "amount": {"type": "number"}},
        "required": ["amount"],
        "additionalProperties": False,
    },
}


def use_device_authorization_endpoint(provider: Provider, value: str) -> None:
    """Enter the code of a device in the browser of a user, and get the tokens of the device (RFC 8628)."""
    client, _ = create_client(tenant_id=provider.tenant.pk, name="Television", grant_types=(DEVICE,), token_endpoint_auth_method="none")
    provider.enable(client.client_id)
    codes = json.loads(provider.post(value, {"client_id": client.client_id, "scope": "openid"}).body)
    ask = {"grant_type": DEVICE, "client_id": client.client_id, "device_code": codes["device_code"]}
    assert json.loads(provider.post(provider.metadata["token_endpoint"], ask).body)["error"] == "authorization_pending"
    browser = provider.browser()
    page = browser.submit(browser.get(codes["verification_uri"].removeprefix(provider.issuer.rstrip("/"))), user_code=codes["user_code"])
    page = browser.follow(browser.submit(browser.follow(page), username=EMAIL, password=PASSWORD))
    assert browser.submit(page, answer="allow").status in (200, 302, 303)
    page = provider.post(provider.metadata["token_endpoint"], ask)
    assert good_tokens(page)["id_token"]


def use_device_grant(provider: Provider) -> None:
    use_device_authorization_endpoint(provider, provider.metadata["device_authorization_endpoint"])


def use_backchannel_authentication_endpoint(provider: Provider, value: str) -> None:
    """Request an approval as a client, open the mailed link as the user, and get the tokens of the client (CIBA)."""
    client, secret = create_client(
        tenant_id=provider.tenant.pk, name="Call center", grant_types=(CIBA,), token_endpoint_auth_method="client_secret_post"
    )
    provider.enable(client.client_id)
    user = User.objects.of(provider.tenant.pk).get(email=EMAIL)
    proof = {"client_id": client.client_id, "client_secret": secret}
    hint = json.dumps({"format": "iss_sub", "iss": provider.issuer, "sub": user.user_id})
    asked = {**proof, "scope": "openid", "binding_message": "21-49-38", "login_hint": hint}
    begun = json.loads(provider.post(value, asked).body)
    poll = {**proof, "grant_type": CIBA, "auth_req_id": begun["auth_req_id"]}
    token_endpoint = provider.metadata["token_endpoint"]
    assert json.loads(provider.post(token_endpoint, poll).body)["error"] == "authorization_pending"
    job = Job.objects.of(provider.tenant.pk).filter(type=Job.Type.MESSAGE).latest("created_at")
    assert run_job(job.pk)
    link = str(mail.outbox[-1].body).partition(provider.issuer)[2].split()[0]
    browser = provider.browser()
    page = browser.submit(browser.follow(browser.get(f"/{link}")), username=EMAIL, password=PASSWORD)
    assert browser.submit(browser.follow(page), answer="allow").status in (200, 302, 303)
    assert good_tokens(provider.post(token_endpoint, poll))["id_token"]


def use_delivery_mode(provider: Provider, value: str) -> None:
    assert value == "poll"


def use_user_code_parameter(provider: Provider, value: bool) -> None:
    """Check that clients need no user code. `use_backchannel_authentication_endpoint` sends a request without a user code."""
    assert value is False


def use_ciba_grant(provider: Provider) -> None:
    use_backchannel_authentication_endpoint(provider, provider.metadata["backchannel_authentication_endpoint"])


def use_exchange_grant(provider: Provider) -> None:
    """Act as an API that has received a token, and exchange it for a new token, which the next API accepts (RFC 8693)."""
    api(provider)
    following = create_api_resource(tenant_id=provider.tenant.pk, identifier=NEXT_API, scopes=[{"value": "read:things"}])
    settings = {"resource_server_identifier": API, "token_exchange": {"allow_any_profile_of_type": ["on_behalf_of_token_exchange"]}}
    client, secret = create_client(
        tenant_id=provider.tenant.pk, name="API", app_type="resource_server", grant_types=(EXCHANGE,), settings=settings
    )
    names = {"tenant_id": provider.tenant.pk, "client_id": client.client_id}
    create_client_grant(**names, api_resource=following, scopes=["read:things"], subject_type="user")
    token = new_party(provider).logged_in(audience=API, scope="openid read:things").access_token
    form = {"grant_type": EXCHANGE, "client_id": client.client_id, "client_secret": secret, "audience": NEXT_API}
    page = provider.post(provider.metadata["token_endpoint"], {**form, "subject_token": token, "subject_token_type": ACCESS_TOKEN})
    told = good_tokens(page)
    assert told["issued_token_type"] == ACCESS_TOKEN
    claims = dict(jwt.decode(told["access_token"], provider.keys, algorithms=["RS256"]).claims)
    assert (claims["sub"], claims["act"]["sub"].partition("@")[0]) == (provider.user.user_id, client.client_id)


def use_registration_endpoint(provider: Provider, value: str) -> None:
    body = json.dumps({"redirect_uris": ["https://rp.example.test/callback"]}).encode()
    page = provider.ask("POST", value, headers={"Content-Type": "application/json"}, body=body)
    told = json.loads(page.body)
    proof = {"Authorization": f"Bearer {told['registration_access_token']}"}
    read = provider.ask("GET", told["registration_client_uri"], headers=proof)
    assert (page.status, json.loads(read.body)["client_id"]) == (201, told["client_id"])
    assert provider.ask("DELETE", told["registration_client_uri"], headers=proof).status == 204


def use_introspection_endpoint(provider: Provider, value: str) -> None:
    use_introspection_method(provider, "client_secret_basic")


def use_introspection_method(provider: Provider, value: str) -> None:
    machine = Machine(provider, value)
    _inspect(machine)


def use_introspection_algorithm(provider: Provider, value: str) -> None:
    _inspect(Machine(provider, "private_key_jwt", algorithm=value))


def _inspect(machine: Machine) -> None:
    address = machine.provider.metadata["introspection_endpoint"]
    told = json.loads(machine.ask(address, {"token": machine.tokens()["access_token"]}).body)
    assert (told["active"], told["client_id"]) == (True, machine.client.client_id)
    assert json.loads(machine.ask(address, {"token": "unknown"}).body) == {"active": False}


def use_detail_type(provider: Provider, value: str) -> None:
    """Request one payment as a client, and consent as the user. The token must contain the payment (RFC 9396)."""
    assert value == DETAIL["type"]
    party = new_party(provider)
    details = json.dumps([DETAIL])
    page = party.browser.submit(
        party.shown(party.authorize(audience=API, authorization_details=details)), username=EMAIL, password=PASSWORD
    )
    question = party.shown(page)
    assert "Pay 12." in re.sub(r"<[^>]*>|[\u2066-\u2069]", "", question.text)
    outcome = party.complete(party.browser.submit(question, answer="allow"))
    assert outcome.tokens["authorization_details"] == [DETAIL]


def add_detail_type(provider: Provider) -> None:
    """Register the type of the details at the API, so that the discovery document lists the type."""
    resource: ApiResource = api(provider)
    update_api_resource(tenant_id=provider.tenant.pk, resource_id=resource.pk, changes={"settings": {"authorization_details": [TYPE]}})
    forget_all()


def use_check_session_iframe(provider: Provider, value: str) -> None:
    assert provider.ask("GET", value).status == 200
    party = new_party(provider)
    state = party.logged_in().answer["session_state"]
    digest, _, salt = state.partition(".")
    text = f"{party.client.client_id} https://rp.example.test {party.browser.cookies['session_state']} {salt}"
    assert hashlib.sha256(text.encode()).hexdigest() == digest


def use_frontchannel_logout(provider: Provider, value: bool) -> None:
    assert ("https://rp.example.test/out" in _frames(provider)) is value


def use_frontchannel_session(provider: Provider, value: bool) -> None:
    assert ("sid=" in _frames(provider)) is value


def _frames(provider: Provider) -> str:
    """Return the page that a browser loads after a logout, for a client that requests notices."""
    party = new_party(provider, settings={"frontchannel_logout_uri": "https://rp.example.test/out"})
    sent = {"id_token_hint": party.logged_in().id_token, "post_logout_redirect_uri": LOGGED_OUT}
    return party.browser.follow(party.browser.get("/oidc/logout", sent)).text


def use_global_token_revocation_endpoint(provider: Provider, value: str) -> None:
    """Log a user of an external provider out, with a JWT that the provider has signed."""
    document: dict[str, Any] = {}
    with misbehaving_server(lambda request: reply(200, document[request.path])) as server:
        issuer = f"http://127.0.0.1:{server.port}"
        document["/.well-known/openid-configuration"] = {
            "issuer": issuer,
            **{name: f"{issuer}/{name}" for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")},
        }
        document["/jwks_uri"] = {"keys": [_SIGNING.as_dict(private=False)]}
        options = {"client_id": CLIENT_ID, "client_secret": SECRET, "discovery_url": f"{issuer}/.well-known/openid-configuration"}
        connection: Connection = create_connection(tenant_id=provider.tenant.pk, name="elsewhere", strategy="oidc", options=options)
        user_of(connection, Proven({"sub": "7"}))
        address = value.replace("{connectionName}", connection.name)
        now = int(time.time())
        claims = {"iss": issuer, "sub": "app", "aud": address, "iat": now, "exp": now + 60, "jti": f"one-{now}"}
        named = {"alg": "RS256", "typ": "global-token-revocation+jwt", "kid": "one"}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {jwt.encode(named, claims, _SIGNING)}"}
        subject = {"subject": {"format": "iss_sub", "iss": issuer, "sub": "7"}}
        assert provider.ask("POST", address, headers=headers, body=json.dumps(subject).encode()).status == 204
        unproven = {"Content-Type": "application/json"}
        assert provider.ask("POST", address, headers=unproven, body=json.dumps(subject).encode()).status == 401


def use_global_revocation_method(provider: Provider, value: str) -> None:
    assert value == "global-token-revocation+jwt"


def use_acr_value(provider: Provider, value: str) -> None:
    assert new_party(provider).logged_in(acr_values=value).claims["acr"] == value


# The grants of this module, for `test_discovery_walk.py`.
FURTHER_GRANTS = {CIBA: use_ciba_grant, DEVICE: use_device_grant, EXCHANGE: use_exchange_grant}
