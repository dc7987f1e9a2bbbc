"""`/passkey/*` and the webauthn grant: an application gets tokens only with the passkey, and cannot learn which users exist."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from authapi.factors.passkey_ceremonies import LIFE
from authapi.grants.passkeys import PasskeyGrant
from authapi.models import PasskeyCeremony, SignIn
from authapi.services.tenant_settings import update_tenant_settings
from authapi.views import HOT_ENDPOINTS
from identity.factors.user_factors import remove_factor
from identity.models import Connection, EnrolledFactor, Tenant, User
from identity.services.connections import create_connection
from identity.services.memberships import add_connection
from identity.services.organizations import create_organization
from identity.services.users import block_user
from tests.authapi.asgi_client import Received, ask_token, send
from tests.authapi.factors.passkeys import ON, as_object, authenticator, give_passkey, set_passkeys
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.factories.authapi import Registered
from tests.factories.authenticator import Authenticator
from tests.factories.identity import make_user
from tests.factories.logins import public_client, web_client

NEW = {"email": "new@example.test", "name": "Nova"}
UNKNOWN = (403, {"error": "invalid_grant", "error_description": "The auth_session is unknown, was used, or has expired."})
WRONG = (403, {"error": "invalid_grant", "error_description": "The passkey was not accepted."})
FINGERPRINT = ":".join(["AB"] * 32)


@dataclass
class Shop:
    """A tenant, an application whose users have passkeys, and the user Alice."""

    tenant: Tenant
    client: Registered
    people: Connection
    alice: User

    @property
    def host(self) -> str:
        return f"{self.tenant.pk}.example.test"

    def proof(self) -> dict[str, str]:
        secret = {"client_secret": self.client.secret} if self.client.secret else {}
        return {"client_id": self.client.client_id, **secret}

    def ask(self, path: str, **body: Any) -> Received:
        raw = json.dumps({**self.proof(), **body}).encode()
        return send(HOT_ENDPOINTS[path], "POST", host=self.host, headers={"Content-Type": "application/json"}, chunks=(raw,))

    def begun(self, path: str = "/passkey/challenge", **body: Any) -> dict[str, Any]:
        answer = self.ask(path, **body)
        assert answer.status == 200, answer.body
        return dict(answer.json())

    def give(self, begun: Mapping[str, Any], answer: str | Mapping[str, Any], **more: Any) -> Received:
        said = as_object(answer) if isinstance(answer, str) else answer
        form = {"grant_type": PasskeyGrant.name, **self.proof(), "auth_session": begun["auth_session"], "authn_response": said, **more}
        return ask_token(self.tenant, form, as_json=True)

    def use(self, key: Authenticator, **more: Any) -> Received:
        begun = self.begun()
        return self.give(begun, key.signed(begun["authn_params_public_key"]), **more)


@pytest.fixture
def shop(tenant: Tenant) -> Shop:
    client = web_client(tenant, grant_types=(PasskeyGrant.name, "refresh_token"))
    people = create_connection(tenant_id=tenant.pk, name="people", strategy="database", enabled_clients=[client.client_id], options=ON)
    update_tenant_settings(tenant_id=tenant.pk, changes={"default_directory": "people"})
    set_passkeys(tenant, people)
    forget_all()
    return Shop(tenant, client, people, make_user(connection=people, email="alice@example.test", password="correct horse battery staple"))


def enable(shop: Shop, *clients: Registered) -> None:
    shop.people.enabled_clients = [one.client_id for one in clients]
    shop.people.save(update_fields=["enabled_clients"])


def told(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json()


def test_a_challenge_contains_no_key_and_its_answer_is_accepted_for_one_login(shop: Shop) -> None:
    key, _ = give_passkey(shop.alice, shop.host)
    begun = shop.begun(realm="people")
    asked = begun["authn_params_public_key"]
    assert (asked["rpId"], asked["userVerification"], asked["allowCredentials"]) == (shop.host, "required", [])
    answer = key.signed(asked)
    tokens = shop.give(begun, answer, scope="openid offline_access", realm="people").json()
    _, claims = decoded(tokens["id_token"])
    assert (claims["sub"], set(claims["amr"])) == (shop.alice.user_id, {"pop", "user", "mfa"})
    assert told(shop.give(begun, answer)) == UNKNOWN
    # The same answer is sent with the session of another challenge.
    assert told(shop.give(shop.begun(), answer)) == WRONG
    assert SignIn.objects.of(shop.tenant.pk).filter(type="s").count() == 1


def test_a_session_expires_and_is_refused_with_another_client_or_realm(shop: Shop) -> None:
    key, _ = give_passkey(shop.alice, shop.host)
    other = web_client(shop.tenant, grant_types=(PasskeyGrant.name,))
    enable(shop, shop.client, other)
    theirs = Shop(shop.tenant, other, shop.people, shop.alice)
    begun = shop.begun()
    signed = key.signed(begun["authn_params_public_key"])
    assert told(theirs.give(begun, signed)) == UNKNOWN
    assert shop.give(begun, signed, realm="elsewhere").json()["error_description"] == "Unknown or invalid realm"
    assert shop.give(begun, signed, organization="org_0123456789abcdef").status == 400
    odds: tuple[Any, ...] = (None, "text", [], 1)
    for odd in odds:
        assert shop.give(begun, {}, authn_response=odd).status == 400
    # These refusals have not used up the session. The session ends when it expires.
    row = PasskeyCeremony.objects.of(shop.tenant.pk).get()
    assert row.expires_at - row.created_at <= LIFE
    PasskeyCeremony.objects.of(shop.tenant.pk).update(expires_at=row.created_at)
    assert told(shop.give(begun, signed)) == UNKNOWN
    assert begun["authn_params_public_key"]["challenge"] not in row.sealed


def test_only_a_valid_answer_to_this_challenge_gets_a_token(shop: Shop) -> None:
    key, factor = give_passkey(shop.alice, shop.host)
    key.origin = "http://app.example.test"
    assert told(shop.use(key)) == WRONG
    key.origin, key.verifies = f"http://{shop.host}", False
    assert told(shop.use(key)) == WRONG
    key.verifies = True
    # An answer to a login challenge does not complete a sign-up, and an answer to a sign-up challenge does not complete a login.
    begun = shop.begun("/passkey/register", user_profile=NEW)
    assert told(shop.give(begun, key.signed(begun["authn_params_public_key"]))) == WRONG
    login = shop.begun()
    made = authenticator(shop.host).made({**login["authn_params_public_key"], "user": {"id": "eA"}})
    assert told(shop.give(login, made)) == WRONG
    # A registration for a different challenge.
    begun = shop.begun("/passkey/register", user_profile=NEW)
    challenge = login["authn_params_public_key"]["challenge"]
    foreign = authenticator(shop.host).made({**begun["authn_params_public_key"], "challenge": challenge})
    assert told(shop.give(begun, foreign)) == WRONG
    assert not User.objects.of(shop.tenant.pk).filter(email=NEW["email"]).exists()
    begun = shop.begun()
    signed = key.signed(begun["authn_params_public_key"])
    remove_factor(tenant_id=shop.tenant.pk, user_id=shop.alice.user_id, device=factor.device)
    assert told(shop.give(begun, signed)) == WRONG
    key, _ = give_passkey(shop.alice, shop.host)
    block_user(tenant_id=shop.tenant.pk, user_id=shop.alice.user_id)
    assert shop.use(key).json()["error_description"] == "user is blocked"


def test_a_sign_up_with_a_passkey_reveals_no_existing_user_and_creates_the_new_user(shop: Shop) -> None:
    taken = shop.begun("/passkey/register", user_profile={"email": "alice@example.test"})
    begun = shop.begun("/passkey/register", user_profile=NEW, realm="people")
    free = begun["authn_params_public_key"]
    assert taken["authn_params_public_key"].keys() == free.keys()
    assert (free["rp"]["id"], free["user"]["name"], free["excludeCredentials"]) == (shop.host, NEW["email"], [])
    key = authenticator(shop.host)
    tokens = shop.give(begun, key.made(free), scope="openid").json()
    user = User.objects.of(shop.tenant.pk).get(email=NEW["email"])
    assert decoded(tokens["id_token"])[1]["sub"] == user.user_id
    assert (user.name, getattr(user, "password_credential", None)) == ("Nova", None)
    assert EnrolledFactor.objects.of(shop.tenant.pk).get(user=user).kind == "passkey"
    assert shop.use(key).status == 200
    # A taken name and the passkey of an existing user get the same refusal, after the browser has created the passkey. Nothing is stored.
    another = shop.begun("/passkey/register", user_profile={"email": "b@example.test"})
    for begun, made in ((taken, authenticator(shop.host)), (another, key)):
        answer = shop.give(begun, made.made(begun["authn_params_public_key"]))
        assert told(answer) == (400, {"error": "invalid_signup", "error_description": "Invalid sign up"})
    assert User.objects.of(shop.tenant.pk).count() == 2


def test_an_invalid_profile_and_a_connection_without_passkeys_get_no_passkey(shop: Shop) -> None:
    for profile in (None, "text", {}, {"email": "no address"}, {**NEW, "username": "nova"}, {**NEW, "user_metadata": {"a": 1}}):
        assert shop.ask("/passkey/register", user_profile=profile).status == 400, profile
    set_passkeys(shop.tenant, shop.people, options={"disable_signup": True})
    assert shop.ask("/passkey/register", user_profile=NEW).json()["error"] == "access_denied"
    assert shop.ask("/passkey/challenge").status == 200
    begun = shop.begun()
    set_passkeys(shop.tenant, shop.people, is_on=False)
    assert shop.ask("/passkey/challenge").json()["error"] == "access_denied"
    key, _ = give_passkey(shop.alice, shop.host)
    assert told(shop.give(begun, key.signed(begun["authn_params_public_key"]))) == WRONG
    assert shop.ask("/passkey/challenge", realm="elsewhere").json()["error"] == "invalid_grant"


def test_only_first_party_applications_with_the_grant_may_use_passkeys(shop: Shop) -> None:
    lacking, third = web_client(shop.tenant), web_client(shop.tenant, grant_types=(PasskeyGrant.name,), is_first_party=False)
    for client in (lacking, third):
        refused = Shop(shop.tenant, client, shop.people, shop.alice).ask("/passkey/challenge")
        assert (refused.status, refused.json()["error"]) == (403, "unauthorized_client")
    assert shop.ask("/passkey/challenge", client_secret="wrong").status == 401


def test_requests_of_a_public_application_are_limited(shop: Shop) -> None:
    client = public_client(shop.tenant, grant_types=(PasskeyGrant.name,))
    enable(shop, client)
    public = Shop(shop.tenant, client, shop.people, shop.alice)
    public.client = Registered(client.client, "")
    statuses = {public.ask("/passkey/challenge").status for _ in range(61)}
    assert statuses == {200, 429}


def test_an_android_app_is_accepted_if_the_signing_key_is_set_at_its_client(shop: Shop) -> None:
    key, _ = give_passkey(shop.alice, shop.host)
    key.origin = "android:apk-key-hash:q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s"
    assert told(shop.use(key)) == WRONG
    client = shop.client.client
    client.settings = {**client.settings, "mobile": {"android": {"sha256_cert_fingerprints": [FINGERPRINT]}}}
    client.save(update_fields=["settings"])
    forget_all()
    assert shop.use(key).status == 200


def test_a_login_for_an_organization_requires_membership(shop: Shop) -> None:
    client = shop.client.client
    client.settings = {**client.settings, "organization_usage": "require"}
    client.save(update_fields=["settings"])
    forget_all()
    assert "organization" in shop.ask("/passkey/challenge").json()["error_description"]
    organization = create_organization(tenant_id=shop.tenant.pk, name="acme")
    named = {"organization": organization.pk}
    assert shop.ask("/passkey/challenge", **named).json()["error_description"] == "Unknown or invalid realm"
    add_connection(tenant_id=shop.tenant.pk, organization_id=organization.pk, connection_id=shop.people.pk)
    assert shop.ask("/passkey/register", user_profile=NEW, **named).json()["error"] == "access_denied"
    key, _ = give_passkey(shop.alice, shop.host)
    begun = shop.begun(**named)
    refused = shop.give(begun, key.signed(begun["authn_params_public_key"]))
    assert (refused.status, "is not part of" in refused.json()["error_description"]) == (403, True)
