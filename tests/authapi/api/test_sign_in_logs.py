"""The sign-in log over the management interface: pages, queries, and clients that follow the log and miss no line."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from authapi.expiry import drop_ended
from identity.models import User
from tests.factories.identity import make_user
from tests.factories.sign_ins import make_sign_in
from tests.management import Management, segment


def ids(answer: object) -> list[str]:
    return [line["log_id"] for line in answer]  # type: ignore[attr-defined]


def test_a_line_contains_the_fields_with_a_value_and_omits_empty_fields(api: Management, ada: User) -> None:
    line = make_sign_in(ada, details={"reason": "wrong password"})

    shown = api.get(f"logs/{line.pk}").json

    assert shown == {
        "log_id": line.pk,
        "date": shown["date"],
        "type": "fp",
        "description": "Wrong email or password.",
        "user_id": ada.user_id,
        "user_name": "ada@example.test",
        "connection": "people",
        "ip": "192.0.2.7",
        "details": {"reason": "wrong password"},
    }
    assert api.get("logs/log_nothing").status == 404


def test_pages_contain_the_newest_lines_first_and_the_totals(api: Management, ada: User) -> None:
    now = timezone.now()
    lines = [make_sign_in(ada, created_at=now - timedelta(minutes=minutes)).pk for minutes in (3, 2, 1)]

    page = api.get("logs", {"include_totals": "true", "per_page": 2, "page": 0}).json

    assert (page["start"], page["limit"], page["length"], page["total"]) == (0, 2, 2, 3)
    assert ids(page["logs"]) == [lines[2], lines[1]]
    assert ids(api.get("logs", {"sort": "date:-1"}).json) == lines[::-1]
    assert ids(api.get("logs", {"sort": "date:1"}).json) == lines
    assert api.get("logs", {"sort": "type:1"}).json["errorCode"] == "invalid_query_string"


@pytest.mark.parametrize("query", [{"q": "x" * 1025}, {"q": "type:("}, {"sort": "date:2"}])
def test_invalid_query_parameters_are_refused_even_if_they_have_no_effect(api: Management, query: dict[str, str]) -> None:
    answer = api.get("logs", {"take": 1, **query})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string")


def test_a_client_reads_the_lines_after_its_last_line_oldest_first(api: Management, ada: User) -> None:
    now = timezone.now()
    lines = [make_sign_in(ada, created_at=now - timedelta(minutes=5)).pk for _ in range(2)]
    lines = [*sorted(lines), make_sign_in(ada, created_at=now - timedelta(minutes=1)).pk]

    first = api.get("logs", {"take": 2}).json
    second = api.get("logs", {"take": 2, "from": first[-1]["log_id"]}).json

    assert ids(first) + ids(second) == lines
    assert api.get("logs", {"from": lines[-1]}).json == []
    assert api.get("logs", {"from": "log_unknown"}).json["errorCode"] == "invalid_query_string"


def test_a_client_whose_last_line_was_pruned_continues_with_the_oldest_line(api: Management, ada: User) -> None:
    pruned = make_sign_in(ada, created_at=timezone.now() - timedelta(days=31)).pk
    drop_ended()
    assert api.get("logs", {"from": pruned}).json == []

    line = make_sign_in(ada, created_at=timezone.now() - timedelta(minutes=1)).pk
    assert ids(api.get("logs", {"from": pruned}).json) == [line]


def test_a_client_gets_no_line_while_an_earlier_line_may_be_uncommitted(api: Management, ada: User) -> None:
    make_sign_in(ada, created_at=timezone.now())

    assert api.get("logs", {"take": 10}).json == []
    assert len(api.get("logs").json) == 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("type:fp", {"failed", "mobile"}),
        ("type:(fp OR s)", {"failed", "good", "mobile"}),
        ("type:s AND user_name:ada@example.test", {"good"}),
        ('user_name:"ada@example.test" AND NOT type:s', {"failed", "mobile"}),
        ("user_agent:Mobile*", {"mobile"}),
        ('user_agent:"Mobile/1 \\"beta\\""', {"mobile"}),
        ("ip:192.0.2.7", {"failed", "good"}),
        ('ip:"2001:db8::1"', {"mobile"}),
        ("ip:nonsense", set()),
        ("date:[2020-01-01 TO 2020-01-01]", {"good"}),
        ("date:2020-01-01", {"good"}),
        ("date:[2020-01-02 TO *]", {"failed", "mobile"}),
        ("date:{* TO 2020-01-01}", set()),
        ("(type:s OR type:fp) AND date:[* TO 2021-06-30T00:00:00+02:00]", {"good"}),
        ("", {"failed", "good", "mobile"}),
    ],
)
def test_a_query_finds_the_matching_lines(api: Management, ada: User, query: str, expected: set[str]) -> None:
    noon = timezone.now().replace(year=2020, month=1, day=1, hour=12)
    made = {
        "failed": make_sign_in(ada).pk,
        "good": make_sign_in(ada, type="s", is_success=True, created_at=noon).pk,
        "mobile": make_sign_in(ada, user_agent='Mobile/1 "beta"', ip="2001:db8::1").pk,
    }

    answer = api.get("logs", {"q": query})

    assert answer.status == 200, answer.body
    assert set(ids(answer.json)) == {made[name] for name in expected}
    assert ids(api.get("logs", {"search": query}).json) == ids(answer.json)


@pytest.mark.parametrize(
    "query",
    [
        "fp", "type", "type:", "type:fp type:s", "password:x", "type:(fp", "type:fp)", "ip:192*", "type:[a TO b]", "date:[2020-01-01]",
        "date:[yesterday TO *]", '"', "type:fp AND", "NOT", "type:OR", "log_id:log_*", " OR ".join(["type:s"] * 40), "x" * 2000, "((((",
        "date:9999-12-31",
    ],
)  # fmt: skip
def test_an_invalid_query_is_refused_with_a_reason(api: Management, query: str) -> None:
    answer = api.get("logs", {"q": query})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string"), answer.body
    assert "Invalid query: " in answer.json["message"]


def test_a_deeply_nested_query_is_refused_and_does_not_exhaust_the_process(api: Management) -> None:
    assert api.get("logs", {"q": "(" * 500}).status == 400
    assert api.get("logs", {"q": "NOT " * 250 + "type:s"}).status == 400


def test_only_the_requested_fields_are_shown(api: Management, ada: User) -> None:
    line = make_sign_in(ada)
    assert api.get("logs", {"fields": "log_id,type"}).json == [{"log_id": line.pk, "type": "fp"}]
    assert "ip" not in api.get(f"logs/{line.pk}", {"fields": "ip", "include_fields": "false"}).json
    assert api.get("logs", {"fields": "password"}).status == 400


def test_the_log_of_a_user_contains_only_lines_of_that_user(api: Management, ada: User) -> None:
    bob = make_user(connection=ada.connection, email="bob@example.test")
    line = make_sign_in(ada).pk
    make_sign_in(bob)

    page = api.get(f"users/{segment(ada.user_id)}/logs", {"include_totals": "true", "per_page": 50, "page": 0}).json
    assert (page["total"], ids(page["logs"])) == (1, [line])
    assert api.get("users/database%7Cffffffffffffffffffffffff/logs").status == 404
