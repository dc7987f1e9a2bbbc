"""Calls the management interface with the unmodified Python client and prints the results. Runs in a separate Python environment."""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.management.errors import BadRequestError, ConflictError, NotFoundError  # type: ignore[import-untyped]

ONCE = {"max_retries": 0}


def status_of(error: type[Exception], call: Any, *args: Any, **kwargs: Any) -> int:
    """Return the HTTP status of the exception `error` that the call raises, or 0 if the call succeeds."""
    try:
        call(*args, **kwargs, request_options=ONCE)
    except error as raised:
        return int(raised.status_code)  # type: ignore[attr-defined]
    return 0


def connections(client: Any, seen: dict[str, Any]) -> str:
    people = client.connections.create(name="people", strategy="auth0")
    client.connections.create(name="mail", strategy="email")
    client.connections.update(people.id, metadata={"a": "b"})
    seen["connection"] = client.connections.get(people.id).metadata
    seen["connections"] = [connection.name for connection in client.connections.list(take=1)]
    seen["duplicate connection"] = status_of(ConflictError, client.connections.create, name="mail", strategy="email")
    seen["unknown connection"] = status_of(NotFoundError, client.connections.get, "con_ffffffffffffffff")
    return str(people.id)


def users(client: Any, seen: dict[str, Any]) -> str:
    emails = [f"{name}@example.test" for name in ("ada", "bob", "eve")]
    created = [client.users.create(connection="people", email=email, password="Correct-horse-7") for email in emails]
    seen["user ids"] = [user.user_id.partition("|")[0] for user in created]
    seen["users"] = [user.email for user in client.users.list(per_page=1)]
    ada = created[0].user_id
    client.users.update(ada, user_metadata={"plan": "full"}, given_name="Ada")
    user = client.users.get(ada)
    seen["user"] = [user.given_name, user.user_metadata, user.identities[0].connection]
    seen["by email"] = [user.user_id == ada for user in client.users.list_users_by_email(email="ADA@example.test")]
    seen["duplicate user"] = status_of(ConflictError, client.users.create, connection="people", email=emails[0], password="Correct-horse-7")
    seen["weak password"] = status_of(BadRequestError, client.users.create, connection="people", email="x@example.test", password="a")
    return str(ada)


def identities(client: Any, seen: dict[str, Any], ada: str) -> None:
    secondary = client.users.create(connection="mail", email="ada@mail.example.test", user_id="a/b")
    linked = client.users.identities.link(ada, provider="email", user_id="a/b")
    seen["linked"] = [[identity.provider, identity.user_id] for identity in linked][1:]
    seen["linked user"] = status_of(NotFoundError, client.users.get, secondary.user_id)
    seen["unlinked"] = len(client.users.identities.delete(ada, "email", "a/b"))
    seen["restored"] = client.users.get("email|a/b").email


def event_streams(client: Any, seen: dict[str, Any], action_id: str) -> None:
    body = {
        "name": "directory",
        "subscriptions": [{"event_type": "user.created"}],
        "destination": {"type": "action", "configuration": {"action_id": action_id}},
    }
    stream = client.event_streams.create(request=body)
    seen["stream"] = [stream.status, stream.destination.configuration.action_id == action_id]
    seen["disabled"] = client.event_streams.update(stream.id, status="disabled", name="renamed").status
    seen["streams"] = [found.name for found in client.event_streams.list()]
    client.event_streams.delete(stream.id)
    client.event_streams.delete(stream.id)
    seen["unknown stream"] = status_of(NotFoundError, client.event_streams.get, stream.id)


def main(base_url: str, token: str, action_id: str) -> None:
    client = Auth0(base_url=base_url, token=token)
    seen: dict[str, Any] = {}
    people = connections(client, seen)
    ada = users(client, seen)
    identities(client, seen, ada)
    event_streams(client, seen, action_id)
    client.users.delete(ada)
    client.users.delete(ada)
    client.connections.delete(people)
    client.connections.delete(people)
    seen["left"] = [user.email for user in client.users.list()]
    print(json.dumps(seen))  # noqa: T201 (the test reads this output)


if __name__ == "__main__":
    main(*sys.argv[1:])
