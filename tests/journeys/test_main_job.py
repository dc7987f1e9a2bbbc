"""The main path: the event of a new user reaches a subscriber, and the user gets an account on a SCIM server."""

from __future__ import annotations

import stat

import requests

from tests.journeys.service import Service, eventually, messages


def test_creating_blocking_and_deleting_a_user_reaches_the_stream_and_the_scim_server(service: Service) -> None:
    with service.events(event_type=["user.created", "user.updated", "user.deleted"]) as stream:
        user = service.create_user("grace@example.test", given_name="Grace", family_name="Hopper", user_metadata={"phone": "+15550100"})
        created = messages(stream, until=lambda message: message["event"]["data"]["object"]["user_id"] == user["user_id"])[-1]
        assert created["type"] == created["event"]["type"] == "user.created"
        assert created["event"]["data"]["object"]["email"] == "grace@example.test"
        resource = eventually(lambda: service.scim_users(user["user_id"]), what="the user in the SCIM server")[0]
        assert resource["userName"] == "grace@example.test"
        assert resource["name"]["givenName"] == "Grace"
        assert resource["active"] is True

        service.call("PATCH", f"/users/{user['user_id'].replace('|', '%7C')}", {"blocked": True})
        messages(stream, until=lambda message: message["type"] == "user.updated")
        eventually(lambda: service.scim_users(user["user_id"])[0]["active"] is False, what="the block in the SCIM server")

        service.call("DELETE", f"/users/{user['user_id'].replace('|', '%7C')}")
        messages(stream, until=lambda message: message["type"] == "user.deleted")
        eventually(lambda: not service.scim_users(user["user_id"]), what="the deletion in the SCIM server")


def test_a_stream_resumes_after_the_cursor_of_its_last_event(service: Service) -> None:
    with service.events() as stream:
        opening = stream.opened().message["offset"]
        first = service.create_user("left@example.test")
        seen = messages(stream, until=lambda message: message["event"]["data"]["object"].get("user_id") == first["user_id"])
    second = service.create_user("missed@example.test")
    with service.events(**{"from": seen[-1]["offset"]}) as resumed:
        missed = messages(resumed, until=lambda message: message["event"]["data"]["object"].get("user_id") == second["user_id"])
    with service.events(**{"from": opening}) as replayed:
        again = messages(replayed, until=lambda message: message["event"]["data"]["object"].get("user_id") == second["user_id"])
    assert again == [*seen, *missed]


def test_make_up_prints_the_urls_and_credentials_that_a_newcomer_needs(service: Service) -> None:
    facts = service.facts
    for name in ("admin_url", "admin_user", "admin_password", "base_url", "scim_base_url"):
        assert facts[name] in service.block
    assert stat.S_IMODE((service.data_dir / "up.json").stat().st_mode) == 0o600
    assert set(facts["pids"]) == {"web", "worker", "beat", "postgres", "redis", "scim"}


def test_the_printed_credentials_open_the_admin(service: Service) -> None:
    session = service.admin()
    page = session.get(f"{service.facts['admin_url']}identity/user/", timeout=20)
    assert page.status_code == 200
    assert requests.get(f"{service.facts['admin_url']}identity/user/", timeout=20, allow_redirects=False).status_code == 302
