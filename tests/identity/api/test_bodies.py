"""The limits of request bodies, and the messages of refusals, which name the invalid member of the body."""

from __future__ import annotations

from urllib.parse import urlencode

from identity.models import Connection, Tenant, User
from tests.management import Management, segment

FORM = {"content-type": "application/x-www-form-urlencoded"}
MEMBERS: list[tuple[object, str]] = [
    ({"shoe_size": 42}, "'Additional properties not allowed' on property shoe_size"),
    ({"name": 42}, "'Expected type string' on property name"),
    ({"name": ""}, "'String is too short (0 chars), minimum 1' on property name"),
    ({"blocked": "true"}, "'Expected type boolean' on property blocked"),
    ({"blocked": 1}, "'Expected type boolean' on property blocked"),
    ({"blocked": None}, "'This field may not be null' on property blocked"),
    ({"user_metadata": []}, "'Expected type object' on property user_metadata"),
    ({"user_metadata": "{}"}, "'Expected type object' on property user_metadata"),
    ({"email": "no address"}, "'Object didn't pass validation for format email' on property email"),
    ({"phone_number": "0123"}, r"'String does not match pattern ^\+[0-9]{1,15}$' on property phone_number"),
    ({"picture": "ftp://pictures.example.test/a"}, "'Object didn't pass validation for format strict-uri' on property picture"),
    ({"given_name": "x" * 151}, "'Ensure this field has no more than 150 characters' on property given_name"),
    ({"app_metadata": {"blocked": True}}, "'Property names are reserved: blocked' on property app_metadata"),
    ([], "'Expected type object' on property body"),
    ("text", "'Expected type object' on property body"),
    (None, "'Expected type object' on property body"),
]
UNSTORABLE = [
    rb'{"name": "a\u0000b"}',
    rb'{"name": "\ud800"}',
    rb'{"user_metadata": {"a\u0000": 1}}',
    rb'{"user_metadata": {"deep": ["\udfff"]}}',
    rb'{"user_metadata": {"number": 1e999}}',
    rb'{"user_metadata": {"number": ' + b"9" * 400 + b"}}",
    rb'{"user_metadata": {"number": ' + b"9" * 5000 + b"}}",
    rb'{"user_metadata": {"number": NaN}}',
    b'{"user_metadata": ' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}",
    b"[" * 100_000,
    b'{"name": "a"',
    b'{"name": "a"} {}',
    b'{"name": "\xff"}',
    b"\xff\xfe",
    rb'{"\ud800": 1}',
]
ODD_FORMS = [
    b"name=%ff",
    b"blocked=yes",
    b"shoe_size=42",
    b"user_metadata=text",
    b"name=a&name=b",
    b"a[b]" * 5,
    b"x[a][b][c][d][e][f][g][h][i][j]=1",
]


def path_of(user: User) -> str:
    return f"users/{segment(user.user_id)}"


def test_the_refusal_names_the_invalid_member(api: Management, ada: User) -> None:
    for body, reason in MEMBERS:
        answer = api.patch(path_of(ada), b"null" if body is None else body)
        message = f"Payload validation error: {reason}"
        assert answer.json == {"statusCode": 400, "error": "Bad Request", "message": message, "errorCode": "invalid_body"}
        assert answer.status == 400


def test_values_that_cannot_be_read_back_unchanged_are_refused(api: Management, tenant: Tenant, ada: User) -> None:
    for body in UNSTORABLE:
        answer = api.patch(path_of(ada), body)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), body[:80]
    assert User.objects.of(tenant.pk).get(pk=ada.pk).updated_at == ada.updated_at


def test_a_body_of_more_than_a_megabyte_is_refused(api: Management, ada: User) -> None:
    answer = api.patch(path_of(ada), b'{"name": "' + b"x" * 1024 * 1024 + b'"}')
    assert (answer.status, answer.json["statusCode"]) == (413, 413)
    assert int(answer.headers["x-ratelimit-remaining"]) < int(answer.headers["x-ratelimit-limit"])


def test_forms_are_read_like_json(api: Management, database_connection: Connection) -> None:
    pairs = [
        ("connection", "people"),
        ("email", "ada@example.test"),
        ("password", "Correct-horse-7"),
        ("email_verified", "true"),
        ("user_metadata[plan]", "full"),
        ("app_metadata", '{"seats": 3}'),
    ]
    answer = api.call("POST", "users", body=urlencode(pairs).encode(), headers=FORM)
    assert answer.status == 201, answer.body
    assert answer.json["email_verified"] is True
    assert answer.json["user_metadata"] == {"plan": "full"}
    assert answer.json["app_metadata"] == {"seats": 3}


def test_a_member_that_a_form_repeats_is_read_as_a_list(api: Management) -> None:
    pairs = [("name", "a"), ("strategy", "email"), ("enabled_clients", "one"), ("enabled_clients", "two"), ("realms[]", "a")]
    pairs += [("authentication[active]", "false")]
    answer = api.call("POST", "connections", body=urlencode(pairs).encode(), headers=FORM)
    assert answer.status == 201, answer.body
    assert answer.json["enabled_clients"] == ["one", "two"]
    assert answer.json["authentication"] == {"active": False}


def test_an_invalid_form_is_refused(api: Management, ada: User) -> None:
    for body in ODD_FORMS:
        answer = api.call("PATCH", path_of(ada), body=body, headers=FORM)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), body


def test_unsupported_content_types_are_refused(api: Management, ada: User) -> None:
    answer = api.call("PATCH", path_of(ada), body=b"<name/>", headers={"content-type": "application/xml"})
    assert (answer.status, answer.json["error"]) == (415, "Unsupported Media Type")


def test_the_body_of_a_read_request_is_ignored(api: Management, ada: User) -> None:
    assert api.call("GET", path_of(ada), body=b"null").status == 200
    assert api.call("DELETE", path_of(ada), body=b"not json").status == 204
