"""Reads `GET /logs` with the unmodified Python client, whose models validate every line, and prints the results."""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.management.errors import BadRequestError  # type: ignore[import-untyped]
from auth0.management.types import Log  # type: ignore[import-untyped]


def judged(line: Any) -> Any:
    """Validate the line strictly with the model of the client, without conversions of types, and return the line."""
    return Log.model_validate(line.model_dump(by_alias=True, exclude_unset=True), strict=True)


def main() -> None:
    _, address, token, _ = sys.argv
    client = Auth0(token=token, base_url=address)
    people = client.connections.create(name="people", strategy="auth0")
    ada = client.users.create(connection=people.name, email="ada@example.test", password="Correct-horse-7")
    client.users.update(ada.user_id, given_name="Ada")
    refused = 0
    try:
        client.roles.create(name="", request_options={"max_retries": 0})
    except BadRequestError as error:
        refused = error.status_code
    failed, changed, made, connected = (judged(line) for line in client.logs.list(per_page=2))
    seen = {
        "refused": refused,
        "types": [failed.type, changed.type, made.type, connected.type],
        "descriptions": [changed.description, made.description, connected.description],
        "user": [changed.user_id == ada.user_id, made.user_id == ada.user_id],
        "password": made.details["request"]["body"]["password"],
        "status": made.details["response"]["statusCode"],
        "found": [line.log_id == made.log_id for line in client.logs.list(search='description:"Create a user"')],
        "one": judged(client.logs.get(made.log_id)).type,
        "of the user": [judged(line).description for line in client.users.logs.list(ada.user_id)],
    }
    sys.stdout.write(json.dumps(seen))


main()
