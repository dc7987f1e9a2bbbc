"""The mapping converts values to the types of SCIM attributes.

Without a schema, it keeps JSON types. It reports values that it cannot use.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from provisioning.mapping.review import check_sendable, undescribed
from provisioning.mapping.schemas import ENTERPRISE_USER, USER
from provisioning.mapping.table import DEFAULT_TABLE, MappingFailed, MappingRefused, MappingRow, map_user, parse_table
from provisioning.scim.patch import per_attribute
from provisioning.scim.reading import Difference, differences
from tests.provisioning.mapping.test_mapping import ANNA, JSON, REQUIRED, leaves, mapped

CUSTOM = "urn:example:params:scim:schemas:extension:hr:2.0:User"


def table_of(*rows: tuple[str, str], **more: Any) -> tuple[MappingRow, ...]:
    return parse_table([*REQUIRED, *({"path": path, "source": source, **more} for path, source in rows)])


@pytest.mark.parametrize(
    "value",
    [True, False, 7, 0, 7.5, "2026-11-22T10:00:00Z", "text", ["a", 7, True], [{"value": "a"}], {"code": 7, "since": "2026"}],
    ids=repr,
)
def test_a_value_without_a_schema_keeps_its_json_type(value: Any) -> None:
    table = table_of(
        (f"{CUSTOM}:thing", "app_metadata.thing"), (f"{CUSTOM}:group.part", "app_metadata.thing"), ("oddity", "app_metadata.thing")
    )
    resource = mapped({**ANNA, "app_metadata": {"thing": value}}, table)
    assert resource[CUSTOM] == {"thing": value, "group": {"part": value}}
    assert resource["oddity"] == value
    assert type(resource[CUSTOM]["thing"]) is type(value)


def test_null_and_empty_members_of_a_value_without_a_schema_are_not_sent() -> None:
    value = {"a": None, "b": [None, "", "c"], "d": {}, "e": {"f": None}, "g": 0}
    resource = mapped({**ANNA, "app_metadata": {"thing": value}}, table_of((f"{CUSTOM}:thing", "app_metadata.thing")))
    assert resource[CUSTOM] == {"thing": {"b": ["c"], "g": 0}}


@pytest.mark.parametrize("value", [None, "", " ", [], {}, [None], {"a": None}], ids=repr)
def test_an_extension_whose_value_is_empty_is_not_sent(value: Any) -> None:
    resource = mapped({**ANNA, "app_metadata": {"thing": value}}, table_of((f"{CUSTOM}:thing", "app_metadata.thing")))
    assert CUSTOM not in resource
    assert resource["schemas"] == [USER]


def test_a_value_with_too_many_nested_levels_is_omitted() -> None:
    value: Any = "x"
    for _ in range(500):
        value = {"a": [value]}
    result = map_user({**ANNA, "app_metadata": {"thing": value}}, table_of((f"{CUSTOM}:thing", "app_metadata.thing")), "create")
    assert CUSTOM not in result.resource
    assert result.left_out == (f"{CUSTOM}:thing: the value is nested more than 16 deep.",)


def test_rows_without_a_type_filter_send_one_element_for_each_value() -> None:
    assert mapped(ANNA, table_of(("emails.value", "email")))["emails"] == [{"value": "anna@example.test"}]
    several = table_of(
        ("emails.value", "[email, user_metadata.phone]"), ("emails.display", "['first', `null`]"), ("emails.primary", "`true`")
    )
    assert mapped(ANNA, several)["emails"] == [
        {"value": "anna@example.test", "display": "first", "primary": True},
        {"value": "+4712345678"},
    ]


@pytest.mark.parametrize(
    ("value", "elements"),
    [
        ("admin", [{"value": "admin"}]),
        (["admin", None, 7], [{"value": "admin"}, {"value": "7"}]),
        (
            [{"value": "admin", "primary": True}, {"value": "dev", "primary": True}],
            [{"value": "admin", "primary": True}, {"value": "dev", "primary": False}],
        ),
        ([], None),
        ([{"value": None}], None),
    ],
)
def test_a_list_is_converted_to_elements_of_the_schema(value: Any, elements: Any) -> None:
    assert mapped({**ANNA, "app_metadata": {"roles": value}}, table_of(("roles", "app_metadata.roles"))).get("roles") == elements


def test_each_member_of_an_object_is_checked_against_the_schema() -> None:
    result = map_user(
        ANNA, table_of(("name", "{givenName: given_name, age: `7`, formatted: user_metadata, familyName: blocked}")), "create"
    )
    assert result.resource["name"] == {"givenName": "Anna"}
    assert result.unusable == ("name", "name.formatted", "name.familyName")
    assert "no part 'age'" in result.left_out[0]
    assert result.left_out[1] == "name.formatted: a text is expected, not an object."


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("active", "true", "true or false is expected, not a text"),
        ("active", 1, "true or false is expected, not a number"),
        ("title", ["a"], "a text is expected, not a list"),
        ("title", True, "a text is expected, not true or false"),
        ("profileUrl", 7, "a text with an address is expected, not a number"),
        ("x509Certificates.value", [7], "a text in base64 is expected, not a number"),
        ("name", "Anna", "an object is expected with formatted"),
        ("addresses", "Main street", "an object is expected with formatted"),
        ('emails[type eq "work"].primary', "yes", "true or false is expected, not a text"),
        (f"{ENTERPRISE_USER}:manager", "7", "an object is expected with value"),
        (f"{ENTERPRISE_USER}:department", {"a": 1}, "a text is expected, not an object"),
    ],
)
def test_a_value_of_the_wrong_type_is_omitted_and_reported(path: str, value: Any, said: str) -> None:
    result = map_user({**ANNA, "app_metadata": {"x": value}}, table_of((path, "app_metadata.x")), "create")
    assert result.unusable == (path,)
    assert said in result.left_out[0]
    assert result.resource.keys() == {"schemas", "externalId", "userName"}


def test_an_element_marked_as_primary_has_precedence_over_the_first_element() -> None:
    table = table_of(
        ('emails[type eq "work"].value', "email"),
        ('emails[type eq "home"].value', "nickname"),
        ('emails[type eq "home"].primary', "`true`"),
    )
    assert mapped(ANNA, table)["emails"] == [
        {"type": "work", "primary": False, "value": "anna@example.test"},
        {"type": "home", "primary": True, "value": "anna"},
    ]


def test_the_core_urn_is_an_optional_prefix_of_an_attribute() -> None:
    assert mapped({**ANNA, "blocked": True}, table_of((f"{USER}:active", "!blocked")))["active"] is False
    for name in ("id", "schemas", "password", "META"):
        with pytest.raises(MappingRefused, match="cannot be mapped"):
            table_of((f"{USER}:{name}", "email"))


def test_an_unusable_value_removes_no_attribute_and_fails_a_required_row() -> None:
    document = {**ANNA, "nickname": ["a"]}
    assert map_user(document, table_of(("nickName", "nickname"), if_empty="remove"), "update").removed == ()
    with pytest.raises(MappingFailed, match="a text is expected, not a list"):
        map_user(document, table_of(("nickName", "nickname"), if_empty="error"), "update")


def test_a_list_attribute_is_removed_only_if_none_of_its_elements_is_sent() -> None:
    rows = (('emails[type eq "work"].value', "app_metadata.work"), ('emails[type eq "home"].value', "app_metadata.home"))
    table = table_of(*rows, (f"{ENTERPRISE_USER}:manager.value", "app_metadata.manager"), if_empty="remove")
    assert map_user(ANNA, table, "update").removed == ("emails", f"{ENTERPRISE_USER}:manager.value")
    assert map_user({**ANNA, "app_metadata": {"home": "a@b"}}, table, "update").removed == (f"{ENTERPRISE_USER}:manager.value",)


@pytest.mark.parametrize("if_empty", ["omit", "remove"])
def test_differences_include_elements_that_an_update_removes(if_empty: str) -> None:
    rows = (('emails[type eq "work"].value', "app_metadata.work"), ('emails[type eq "home"].value', "app_metadata.home"))
    table = table_of(*rows, if_empty=if_empty)
    there = {"userName": ANNA["email"], "externalId": ANNA["user_id"], "emails": [{"type": "home", "value": "old"}]}
    work = map_user({**ANNA, "app_metadata": {"work": "new"}}, table, "update")
    assert differences(work, there, table, clears=False) == [
        Difference('emails[type eq "work"].value', "new", None),
        Difference('emails[type eq "home"].value', None, "old"),
    ]
    nothing = differences(map_user(ANNA, table, "update"), there, table, clears=False)
    assert nothing == ([] if if_empty == "omit" else [Difference('emails[type eq "home"].value', None, "old")])


def test_an_update_per_attribute_sends_each_attribute_of_an_extension_by_its_path() -> None:
    resource = {"name": {"givenName": "A"}, ENTERPRISE_USER: {"department": "Tours", "manager": {"value": "7"}}, CUSTOM: {"tags": ["a"]}}
    assert [(operation["path"], operation["value"]) for operation in per_attribute(resource)["Operations"]] == [
        ("name", {"givenName": "A"}),
        (f"{ENTERPRISE_USER}:department", "Tours"),
        (f"{ENTERPRISE_USER}:manager.value", "7"),
        (f"{CUSTOM}:tags", ["a"]),
    ]


@pytest.mark.parametrize(
    ("path", "source", "about"),
    [
        ("nickName.first", "name", "Row 3: nickName has no parts"),
        ("name.first", "name", "Row 3: name has no part first; it has formatted"),
        ('name[type eq "work"].formatted', "name", "Row 3: name is not a list"),
        ('emails[type eq "work"].address', "email", "Row 3: emails has no part address"),
        (f"{ENTERPRISE_USER}:manager.id", "name", "Row 3: manager has no part id"),
        ("active", "'true'", "Row 3: This constant cannot be sent: true or false is expected, not a text"),
        ("title", "`[1]`", "Row 3: This constant"),
        ("UserName", "email", "Row 3: Each attribute"),
        (f"{USER}:userName", "email", "Row 3: Each attribute"),
    ],
)
def test_a_row_whose_value_cannot_be_sent_is_refused_only_on_saving(path: str, source: str, about: str) -> None:
    table = table_of((path, source))
    map_user(ANNA, table, "create")
    with pytest.raises(MappingRefused, match=about):
        check_sendable(table)


def test_every_row_of_the_default_table_can_be_sent() -> None:
    check_sendable(DEFAULT_TABLE)
    assert undescribed(parse_table(None, enterprise=True)) == []


def test_an_attribute_outside_its_schema_causes_a_warning() -> None:
    table = table_of(("favoriteColor", "name"), (f"{CUSTOM}:color", "name"), (f"{ENTERPRISE_USER}:color", "name"))
    check_sendable(table)
    assert [text.partition(": the value")[0].rpartition(" ")[2] for text in undescribed(table)] == [
        "favoriteColor",
        f"{ENTERPRISE_USER}:color",
    ]


@given(JSON)
def test_any_value_maps_to_any_kind_of_attribute_without_error_or_null(value: Any) -> None:
    paths = (
        "title",
        "profileUrl",
        "name",
        "name.formatted",
        "roles",
        "roles.value",
        'ims[type eq "a"].value',
        f"{CUSTOM}:x",
        f"{CUSTOM}:y.z",
    )
    table = table_of(*((path, "app_metadata.x") for path in paths if path != "name.formatted" and path != "roles.value"))
    resource = map_user({**ANNA, "app_metadata": {"x": value}}, table, "create").resource
    for leaf in leaves({name: item for name, item in resource.items() if name != "schemas"}):
        assert leaf is not None
        assert not (isinstance(leaf, str) and not leaf.strip())
