"""Processes are killed during changes of users.

The stream contains each change once and in order. At the end, the SCIM server has the same values as the database.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
import requests

from tests.depth import sized
from tests.journeys.service import Service, eventually, messages

# The changes alternate between the users, and each change writes its number. So the test knows the last number of each user.
CHANGES = sized(96, deep=200)
KILLS = sized(2, deep=3)
USERS = 8


def _change(service: Service, users: list[dict[str, Any]], number: int) -> None:
    """Change one user. If the request fails because a process was killed, repeat the request with the same value."""
    user_id = users[number % USERS]["user_id"].replace("|", "%7C")

    def done() -> bool:
        try:
            return service.call("PATCH", f"/users/{user_id}", {"nickname": f"change {number}"}).status_code == 200
        except requests.RequestException:
            return False

    eventually(done, seconds=60, what=f"change {number}")


@pytest.mark.sized
def test_no_change_is_lost_when_web_process_and_worker_are_killed_during_changes(service: Service) -> None:
    with service.events() as stream:
        start = stream.opened().message["offset"]
    users = [service.create_user(f"survivor{number}@example.test") for number in range(USERS)]

    def change() -> None:
        for number in range(CHANGES):
            _change(service, users, number)

    writer = threading.Thread(target=change)
    writer.start()
    for _ in range(KILLS):
        service.kill("web", "worker")
        eventually(service.answers, what="the web server after its restart")
    writer.join()
    marker = service.create_user("marker@example.test")
    with service.events(**{"from": start}) as stream:
        seen = messages(stream, until=lambda message: message["event"]["data"]["object"].get("user_id") == marker["user_id"])

    assert len({message["event"]["id"] for message in seen}) == len(seen)
    for index, user in enumerate(users):
        nicknames = [
            message["event"]["data"]["object"]["nickname"]
            for message in seen
            if message["type"] == "user.updated" and message["event"]["data"]["object"]["user_id"] == user["user_id"]
        ]
        assert nicknames == [f"change {number}" for number in range(CHANGES) if number % USERS == index]

    def equal() -> bool:
        provisioned = {resource["externalId"]: resource.get("nickName") for resource in service.scim_users()}
        return all(provisioned.get(user["user_id"]) == f"change {CHANGES - USERS + index}" for index, user in enumerate(users))

    eventually(equal, seconds=90, what="equality of the SCIM server and the database")
