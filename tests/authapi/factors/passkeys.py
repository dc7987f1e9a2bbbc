"""Users with passkeys: functions that switch passkeys on, and software authenticators that answer challenges."""

from __future__ import annotations

import json
from typing import Any

from webauthn.helpers import bytes_to_base64url

from authapi.factors.settings import remembered_factors
from authapi.models import TenantSettings
from identity.factors.ceremonies import RelyingParty, verified_registration
from identity.factors.user_factors import add_key, user_handle
from identity.models import Connection, EnrolledFactor, Tenant, User
from tests.authapi.browser import Page
from tests.authapi.login.conftest import Login
from tests.factories.authenticator import Authenticator
from tests.factories.sign_in import PASSWORD

ON = {"authentication_methods": {"password": {"enabled": True}, "passkey": {"enabled": True}}}


def set_passkeys(tenant: Tenant, connection: Connection, *, is_on: bool = True, options: dict[str, Any] | None = None, **more: Any) -> None:
    """Switch passkeys on at the tenant, and on or off at a connection."""
    TenantSettings.objects.of(tenant.pk).update_or_create(
        tenant_id=tenant.pk, defaults={"second_factors": {"passkeys": True, "offers_passkeys": False, **more}}
    )
    connection.options = {**connection.options, **(ON if is_on else {}), **(options or {})}
    if not is_on:
        connection.options = {**connection.options, "authentication_methods": {"passkey": {"enabled": False}}}
    connection.save(update_fields=["options"])
    remembered_factors.clear()


def authenticator(host: str) -> Authenticator:
    """Return an authenticator for pages of a host."""
    return Authenticator(origin=f"http://{host}", rp_id=host)


def give_passkey(user: User, host: str, key: Authenticator | None = None) -> tuple[Authenticator, EnrolledFactor]:
    """Give a user a passkey that was created at a host."""
    key = key or authenticator(host)
    asked = {"user": {"id": bytes_to_base64url(user_handle(user))}, "challenge": "eA"}
    made = verified_registration(key.made(asked), RelyingParty(key.rp_id, "Example", key.origin), challenge=b"x")
    kind = EnrolledFactor.Kind.PASSKEY
    added = add_key(tenant_id=user.tenant_id, user_id=user.user_id, kind=kind, made=made, relying_party=key.rp_id, name="Telephone")
    return key, added.factor


def pages_with_passkeys(visit: Login) -> list[Page]:
    """Return the pages for passkeys: the login and the offer to create a passkey, each before and after a refused passkey."""
    set_passkeys(visit.tenant, visit.connection, offers_passkeys=True)
    asking = visit.browser.follow(visit.ask())
    refused = visit.browser.submit(asking, credential="{}")
    answer = visit.browser.submit(refused, credential="", username="ada@example.test", password=PASSWORD, can_make_passkeys="1")
    offer = visit.browser.follow(answer)
    return [asking, refused, offer, visit.browser.submit(offer, credential="{}"), visit.browser.submit(offer, name="x" * 61)]


def as_object(answer: str) -> dict[str, Any]:
    """Return the answer of a browser as the JSON object that an application sends."""
    said: dict[str, Any] = json.loads(answer)
    return said
