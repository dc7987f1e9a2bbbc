from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioning.mapping.schemas import ENTERPRISE_USER, USER
from provisioning.mapping.table import DEFAULT_TABLE, MappingFailed, MappingRefused, MappingRow, Person, map_user, parse_table, person_of
from tests.depth import sized

ANNA = {
    "user_id": "database|anna",
    "email": "anna@example.test",
    "name": "Anna Berg",
    "given_name": "Anna",
    "family_name": "Berg",
    "nickname": "anna",
    "blocked": False,
    "user_metadata": {"phone": "+4712345678"},
}
REQUIRED = [{"path": "externalId", "source": "user_id"}, {"path": "userName", "source": "email"}]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
PROFILES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("user_id", "email", "name", "given_name", "family_name", "nickname", "blocked"), JSON),
        "user_metadata": st.fixed_dictionaries({}, optional={"phone": JSON}) | JSON,
        "app_metadata": st.fixed_dictionaries({}, optional={"department": JSON, "manager_id": JSON}) | JSON,
    },
)


def mapped(document: dict[str, Any], table: tuple[MappingRow, ...] = DEFAULT_TABLE) -> dict[str, Any]:
    return map_user(document, table, "create").resource


def test_the_default_table_has_exactly_the_expected_rows() -> None:
    assert [(row.path, row.source) for row in DEFAULT_TABLE if row.enabled] == [
        ("externalId", "user_id"),
        ("active", "!blocked"),
        ("userName", "email"),
        ('emails[type eq "work"].value', "email"),
        ("name.givenName", "given_name"),
        ("name.familyName", "family_name"),
        ("name.formatted", "name"),
        ("displayName", "name"),
        ("nickName", "nickname"),
        ('phoneNumbers[type eq "work"].value', "user_metadata.phone"),
    ]
    disabled = [row.path.removeprefix(f"{ENTERPRISE_USER}:") for row in DEFAULT_TABLE if not row.enabled]
    assert disabled == ["employeeNumber", "costCenter", "organization", "division", "department", "manager.value"]
    assert all(row.source.startswith("app_metadata.") for row in DEFAULT_TABLE if not row.enabled)


def test_a_complete_profile_is_mapped_to_a_complete_scim_user() -> None:
    assert mapped(ANNA) == {
        "schemas": [USER],
        "externalId": "database|anna",
        "active": True,
        "userName": "anna@example.test",
        "emails": [{"type": "work", "primary": True, "value": "anna@example.test"}],
        "name": {"givenName": "Anna", "familyName": "Berg", "formatted": "Anna Berg"},
        "displayName": "Anna Berg",
        "nickName": "anna",
        "phoneNumbers": [{"type": "work", "primary": True, "value": "+4712345678"}],
    }


def test_missing_attributes_are_omitted() -> None:
    bare = {"user_id": "database|anna", "email": "anna@example.test", "name": None, "given_name": "", "nickname": " "}
    assert mapped(bare) == {
        "schemas": [USER],
        "externalId": "database|anna",
        "active": True,
        "userName": "anna@example.test",
        "emails": [{"type": "work", "primary": True, "value": "anna@example.test"}],
    }


@pytest.mark.parametrize(("blocked", "active"), [(True, False), (False, True), (None, True), ("true", True), (1, True)])
def test_a_user_is_inactive_only_if_the_member_blocked_is_exactly_true(blocked: Any, active: bool) -> None:
    assert mapped({**ANNA, "blocked": blocked})["active"] is active


def test_a_user_is_active_if_the_member_blocked_is_absent() -> None:
    assert mapped({"user_id": "x"})["active"] is True


def test_the_member_schemas_has_the_enterprise_urn_only_with_a_value_of_the_extension() -> None:
    table = parse_table(None, enterprise=True)
    assert mapped(ANNA, table)["schemas"] == [USER]
    with_values = mapped({**ANNA, "app_metadata": {"department": "Tours", "manager_id": "7", "cost_center": ""}}, table)
    assert with_values["schemas"] == [USER, ENTERPRISE_USER]
    assert with_values[ENTERPRISE_USER] == {"department": "Tours", "manager": {"value": "7"}}


def test_the_enterprise_extension_is_sent_only_if_it_is_enabled() -> None:
    assert ENTERPRISE_USER not in mapped({**ANNA, "app_metadata": {"department": "Tours"}})


@pytest.mark.parametrize("value", [True, ["a"], {"a": 1}])
def test_a_value_of_an_unusable_type_is_omitted_and_reported(value: Any) -> None:
    result = map_user({**ANNA, "user_metadata": {"phone": value}}, DEFAULT_TABLE, "create")
    assert "phoneNumbers" not in result.resource
    assert result.unusable == ('phoneNumbers[type eq "work"].value',)


def test_a_number_is_sent_as_a_text() -> None:
    assert mapped({**ANNA, "user_metadata": {"phone": 4712345678}})["phoneNumbers"][0]["value"] == "4712345678"


def test_a_row_can_apply_only_to_creates_or_only_to_updates() -> None:
    table = parse_table(
        [*REQUIRED, {"path": "title", "source": "'new'", "when": "create"}, {"path": "locale", "source": "'nb'", "when": "update"}]
    )
    assert {"title", "locale"} & map_user(ANNA, table, "create").resource.keys() == {"title"}
    assert {"title", "locale"} & map_user(ANNA, table, "update").resource.keys() == {"locale"}


def test_a_row_without_a_value_removes_the_attribute_or_fails_as_configured() -> None:
    removing = parse_table([*REQUIRED, {"path": "nickName", "source": "nickname", "if_empty": "remove"}])
    assert map_user({**ANNA, "nickname": None}, removing, "update").removed == ("nickName",)
    failing = parse_table([*REQUIRED, {"path": "nickName", "source": "nickname", "if_empty": "error"}])
    with pytest.raises(MappingFailed, match="nickName"):
        map_user({**ANNA, "nickname": None}, failing, "update")


def test_only_one_of_two_elements_of_an_attribute_is_primary() -> None:
    rows = [
        *REQUIRED,
        {"path": 'emails[type eq "work"].value', "source": "email"},
        {"path": 'emails[type eq "home"].value', "source": "nickname"},
        {"path": 'emails[type eq "work"].display', "source": "name"},
    ]
    assert mapped(ANNA, parse_table(rows))["emails"] == [
        {"type": "work", "primary": True, "value": "anna@example.test", "display": "Anna Berg"},
        {"type": "home", "primary": False, "value": "anna"},
    ]


def test_a_user_larger_than_the_limit_is_not_mapped() -> None:
    with pytest.raises(MappingFailed, match="larger"):
        mapped({**ANNA, "name": "x" * 40_000})


def test_the_key_of_a_user_is_mapped_even_if_other_rows_would_fail() -> None:
    table = parse_table(
        [*REQUIRED[:1], {"path": "userName", "source": "nickname"}, {"path": "title", "source": "missing", "if_empty": "error"}]
    )
    assert person_of(ANNA, table) == Person("database|anna", "anna")
    assert person_of({"user_id": "x"}, DEFAULT_TABLE) == Person("x", "")


@pytest.mark.parametrize(
    ("rows", "about"),
    [
        ("text", "list"),
        ([], "list"),
        ([{"path": "userName"}], "Row 1"),
        ([{"path": "userName", "source": "email", "odd": 1}], "Row 1"),
        ([{"path": 7, "source": "email"}], "Row 1"),
        ([{"path": "userName", "source": "email", "enabled": "yes"}], "Row 1"),
        ([*REQUIRED, {"path": "title", "source": "a", "when": "never"}], "Row 3: The member when"),
        ([*REQUIRED, {"path": "title", "source": "a", "if_empty": "keep"}], "Row 3: The member if_empty"),
        ([*REQUIRED, {"path": "title", "source": "a | | b"}], "Row 3"),
        ([*REQUIRED, {"path": "na me", "source": "a"}], "Row 3"),
        ([*REQUIRED, {"path": "id", "source": "a"}], "cannot be mapped"),
        ([*REQUIRED, {"path": "schemas", "source": "a"}], "cannot be mapped"),
        ([*REQUIRED, {"path": 'emails[type eq "work"]', "source": "a"}], "Row 3"),
        ([*REQUIRED, {"path": "userName", "source": "nickname"}], "once"),
        ([*REQUIRED, {"path": "name", "source": "name"}, {"path": "name.givenName", "source": "given_name"}], "as a whole"),
        (REQUIRED[:1], "userName"),
        (REQUIRED[1:], "externalId"),
        ([REQUIRED[0], {**REQUIRED[1], "enabled": False}], "userName"),
        ([REQUIRED[0], {**REQUIRED[1], "when": "create"}], "userName"),
        ([*REQUIRED, *({"path": f"x{number}", "source": "a"} for number in range(100))], "100"),
    ],
)
def test_an_invalid_table_is_refused_with_a_message_that_names_the_problem(rows: Any, about: str) -> None:
    with pytest.raises(MappingRefused, match=about):
        parse_table(rows)


@pytest.mark.sized
@settings(max_examples=sized(30, deep=400))
@given(PROFILES)
def test_any_profile_maps_to_texts_and_booleans_without_empty_values(document: dict[str, Any]) -> None:
    try:
        resource = map_user(document, parse_table(None, enterprise=True), "create").resource
    except MappingFailed:
        return
    assert isinstance(resource["active"], bool)
    for name, value in resource.items():
        if name == "active":
            continue
        for leaf in leaves(value):
            assert leaf is True or (isinstance(leaf, str) and leaf.strip())
    assert ("name" in resource) is any(
        isinstance(document.get(n), str | int | float) and not isinstance(document.get(n), bool) and str(document[n]).strip()
        for n in ("name", "given_name", "family_name")
    )
    assert (ENTERPRISE_USER in resource["schemas"]) is (ENTERPRISE_USER in resource)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return [value]
