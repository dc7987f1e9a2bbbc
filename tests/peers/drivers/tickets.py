"""Uses auth0-python to create tickets and invitations, whose links applications give to users. Prints the results."""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.management.core.api_error import ApiError  # type: ignore[import-untyped]  # as above


def refusal(call: Any, *arguments: Any, **named: Any) -> list[Any]:
    """Return the class, the status and the code of the error that a call raises, or an empty list if it succeeds."""
    try:
        call(*arguments, **named, request_options={"max_retries": 0})
    except ApiError as error:
        return [type(error).__name__, error.status_code, dict(error.body).get("errorCode")]
    return []


def tickets(client: Any, user_id: str, connection_id: str) -> dict[str, Any]:
    links = client.tickets
    by_id = links.change_password(user_id=user_id, result_url="https://app.example.com/done", ttl_sec=60, mark_email_as_verified=True)
    return {
        "reset by id": by_id.ticket,
        "reset by address": links.change_password(email="ada@example.test", connection_id=connection_id).ticket,
        "verify": links.verify_email(user_id=user_id, ttl_sec=60, include_email_in_redirect=True).ticket,
        "unknown": refusal(links.verify_email, user_id="auth0|unknown"),
        "reset for an unknown user": refusal(links.change_password, user_id="auth0|unknown"),
        "user id and address together": refusal(
            links.change_password, user_id=user_id, email="ada@example.test", connection_id=connection_id
        ),
        "invalid address": refusal(links.change_password, user_id=user_id, result_url="javascript:alert(1)"),
    }


def invitations(client: Any, organization: str, client_id: str) -> dict[str, Any]:
    offers = client.organizations.invitations
    wanted = {"inviter": {"name": "Ada"}, "client_id": client_id, "send_invitation_email": False}
    made = offers.create(organization, invitee={"email": "grace@example.test"}, user_metadata={"plan": "gold"}, ttl_sec=60, **wanted)
    offers.create(organization, invitee={"email": "bob@example.test"}, **wanted)
    read = offers.get(organization, made.id)
    seen = {
        "made": [
            made.inviter.name,
            made.invitee.email,
            made.client_id == client_id,
            made.user_metadata,
            made.organization_id == organization,
        ],
        "lifetime in seconds": round((made.expires_at - made.created_at).total_seconds()),
        "target of the link": made.invitation_url.partition("?")[0],
        "read equals created": made.dict() == read.dict(),
        "listed": sorted(one.invitee.email for one in offers.list(organization, per_page=1)),
        "invalid address": refusal(offers.create, organization, invitee={"email": "no address"}, **wanted),
        "unknown client": refusal(offers.create, organization, invitee={"email": "eve@example.test"}, **{**wanted, "client_id": "unknown"}),
        "unknown": refusal(offers.get, organization, "uinv_0000000000000000"),
    }
    offers.delete(organization, made.id)
    return {**seen, "gone": refusal(offers.get, organization, made.id), "left": [one.invitee.email for one in offers.list(organization)]}


def main() -> None:
    base_url, token, weak, user_id, connection_id, organization, client_id = sys.argv[1:]
    client, stranger = Auth0(base_url=base_url, token=token), Auth0(base_url=base_url, token=weak)
    seen = {"tickets": tickets(client, user_id, connection_id), "invitations": invitations(client, organization, client_id)}
    seen["without the scope"] = {
        "tickets": refusal(stranger.tickets.verify_email, user_id=user_id),
        "invitations": refusal(stranger.organizations.invitations.delete, organization, "uinv_0000000000000000"),
    }
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main()
