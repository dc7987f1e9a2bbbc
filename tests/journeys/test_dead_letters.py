"""The SCIM server is down. A delivery fails in every attempt, becomes a dead letter, and is redelivered after the server is up again."""

from __future__ import annotations

import re

import requests

from tests.journeys.service import Service, eventually, form_token


def _open_dead_letters(service: Service, session: requests.Session, user_id: str) -> list[str]:
    """Return the primary keys of the open dead letters of a user, read from the list in the admin."""
    address = f"{service.facts['admin_url']}provisioning/deadletter/"
    page = session.get(address, params={"q": f"user:{user_id}", "state__exact": "open"}, timeout=20).text
    return re.findall(r'name="_selected_action" value="([^"]+)"', page)


def test_a_failing_delivery_becomes_a_dead_letter_and_is_redelivered(service: Service) -> None:
    user = service.create_user("alan@example.test", given_name="Alan")
    eventually(lambda: service.scim_users(user["user_id"]), what="the user in the SCIM server")
    session = service.admin()
    assert service.launcher("scim-stop").returncode == 0
    try:
        service.call("PATCH", f"/users/{user['user_id'].replace('|', '%7C')}", {"family_name": "Turing"})
        keys = eventually(lambda: _open_dead_letters(service, session, user["user_id"]), seconds=60, what="the dead letter")
    finally:
        assert service.launcher("scim-start").returncode == 0
    assert "familyName" not in service.scim_users(user["user_id"])[0].get("name", {})

    address = f"{service.facts['admin_url']}provisioning/deadletter/"
    token = form_token(session.get(address, timeout=20).text)
    choice = {"action": "redeliver_selected", "_selected_action": keys, "csrfmiddlewaretoken": token}
    confirmation = session.post(address, data=choice, headers={"Referer": address}, timeout=20)
    assert confirmation.status_code == 200
    confirmed = {**choice, "csrfmiddlewaretoken": form_token(confirmation.text), "confirmed": "yes", "reason": "It is back."}
    assert session.post(confirmation.url, data=confirmed, headers={"Referer": address}, timeout=20).status_code == 200
    eventually(lambda: service.scim_users(user["user_id"])[0]["name"].get("familyName") == "Turing", what="the redelivered change")
    assert not _open_dead_letters(service, session, user["user_id"])
