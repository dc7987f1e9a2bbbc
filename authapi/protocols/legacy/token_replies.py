"""The token answer of old endpoints, with the members that old clients expect."""

from __future__ import annotations

from dataclasses import replace

from authapi.grants.user_access import USERINFO_PATH
from authapi.grants.user_grant import Granted, tokens_beside
from authapi.models import Client
from authapi.protocols.legacy.requests import LegacyRequest, Reply
from authapi.tokens.minting import minted
from authapi.tokens.refresh_tokens import Sender

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_TYPE = "bearer"


def for_profile(request: LegacyRequest) -> LegacyRequest:
    """Return a copy of the request for a token that permits nothing but reading the profile.

    The tenant's default audience does not apply.
    """
    return replace(request, form={**request.form, "audience": request.host.issuer + USERINFO_PATH})


def sender_of_device(request: LegacyRequest, sender: Sender) -> Sender:
    """Return `sender` with the device name from the request, by which users and administrators recognize a refresh token."""
    return replace(sender, user_agent=request.text("device") or sender.user_agent)


def token_reply(request: LegacyRequest, client: Client, granted: Granted) -> Reply:
    """Return the signed tokens. Raises `RequestRefused` if the id token cannot be signed."""
    members = {
        "access_token": minted(granted.access, client=client, host=request.host),
        **tokens_beside(granted),
        "token_type": _TYPE,
        "expires_in": granted.access.seconds,
    }
    return Reply(members, headers=NO_STORE)
