"""Visits of the pages on which a user answers an application's request for an approval."""

from __future__ import annotations

from authapi.grants.ciba import GRANT
from authapi.models import CibaRequest
from authapi.services.clients import update_client
from authapi.tokens.ciba_requests import Wanted, begin_request
from identity.models import User
from tests.peers.hosted.walk import Walk

_MESSAGE = "21-49-38"


def approve(walk: Walk) -> None:
    user = walk.world.another_person(walk.unique("approval"))
    link = _link(walk, user)
    walk.open(link)
    walk.submit_login(email=user.email or "")
    walk.look("Allow access?", "Message of the application")
    walk.follow("button[value=allow]")
    walk.look("Request approved", "You can close this page.")
    walk.open(link)
    walk.look("This request was already answered", status=400)
    walk.open(_link(walk, user))
    walk.follow("button[value=deny]")
    walk.look("Request denied", "You can close this page.")
    late = _link(walk, user)
    CibaRequest.objects.of(user.tenant_id).filter(user=user).update(expires=user.created_at)
    walk.open(late)
    walk.look("This request has expired", status=400)
    walk.open("/approve?ticket=nothing")
    walk.look("This link does not work", status=404)
    walk.change_browser()
    walk.open(_link(walk, user))
    walk.submit_login()
    walk.look("This request is for another account", status=403)


def _link(walk: Walk, user: User) -> str:
    """Request an approval from the user, as a client does. Return the link that the user gets."""
    world = walk.world
    client = world.clients["till"]
    if GRANT not in client.grant_types:
        changes = {"grant_types": [GRANT]}
        world.clients["till"] = client = update_client(tenant_id=world.tenant.pk, client_id=client.client_id, changes=changes)
    begun = begin_request(Wanted(client, user, "openid profile", "", _MESSAGE, 300, "email", "203.0.113.7", country="SE"))
    return f"/approve?ticket={begun.link}"
