"""Visits of the pages that connect a device. One of the applications has registered itself."""

from __future__ import annotations

import json
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from authapi.grants.device_code import GRANT
from authapi.models import DeviceGrant
from authapi.protocols.oauth.registration.metadata import registration_of
from authapi.services.clients import update_client
from authapi.services.registered_clients import register_client
from identity.services.connections import update_connection
from tests.peers.hosted.walk import Walk

_AGENT = "Television/2.1"


def activate(walk: Walk) -> None:
    code = new_code(walk)
    walk.open("/activate")
    walk.look("Connect a device", "Enter the code that your device shows.")
    walk.submit(user_code="BBB")
    walk.look("Connect a device", "There is a problem", status=400)
    walk.submit(user_code="BBBB-BBBB")
    walk.look("Connect a device", "No device has this code. Check it, or get a new one on your device.", status=400)
    walk.open(f"/activate?user_code={code}")
    walk.look("Connect a device", "Compare this code with the one on your device. Both must be the same.")
    walk.submit()
    walk.submit_login()
    walk.look("Allow access?", "Code on the device")
    walk.submit()
    walk.open("/activate")
    walk.submit(user_code=code)
    walk.look("Connect a device", "This code has already been used. Get a new one on your device.", status=400)


def answer(walk: Walk) -> None:
    walk.log_in_silently()
    for button, heading in (("allow", "Device connected"), ("deny", "Device not connected")):
        walk.open(f"/activate?user_code={new_code(walk)}")
        walk.submit()
        walk.follow(f"button[value={button}]")
        walk.look(heading, "You can close this page.")
    _expire_while_asking(walk)


def _expire_while_asking(walk: Walk) -> None:
    walk.open(f"/activate?user_code={new_code(walk)}")
    walk.submit()
    rows = DeviceGrant.objects.of(walk.world.tenant.pk).filter(status=DeviceGrant.AUTHORIZATION_PENDING)
    newest = rows.latest("pk")
    rows.filter(pk=newest.pk).update(expires=newest.created)
    walk.follow("button[value=allow]")
    walk.look("This code has expired", status=400)


def show_code(walk: Walk) -> None:
    walk.open(f"/activate/code?user_code={new_code(walk)}")
    walk.look("Log in with another device", "If another person sent you this page, close it.")


def register_and_log_in(walk: Walk) -> None:
    world = walk.world
    update_connection(tenant_id=world.tenant.pk, connection_id=world.people.pk, changes={"is_domain_connection": True})
    # A name that is not in the texts of any language, so that it is not mistaken for a text.
    said = {
        "client_name": "Zettelkasten",
        "redirect_uris": [f"{world.origin}/callback"],
        "token_endpoint_auth_method": "client_secret_post",
    }
    made = register_client(tenant_id=world.tenant.pk, registration=registration_of(said))
    world.clients["registered"] = made.client
    walk.log_in_silently()
    walk.ask("registered", scope="openid profile")
    walk.look("Allow access?", "You continue to")


def new_code(walk: Walk) -> str:
    """Request a code as a device does, and return the user code."""
    world = walk.world
    client = world.clients["television"]
    if GRANT not in client.grant_types:
        changes = {"grant_types": [GRANT], "token_endpoint_auth_method": "none"}
        world.clients["television"] = client = update_client(tenant_id=world.tenant.pk, client_id=client.client_id, changes=changes)
    body = urlencode({"client_id": client.client_id, "scope": "openid profile"}).encode()
    with urlopen(Request(f"{world.service}/oauth/device/code", body, {"User-Agent": _AGENT}), timeout=20) as answer:
        return str(json.load(answer)["user_code"])
