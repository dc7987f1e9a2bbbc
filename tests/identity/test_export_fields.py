"""The fields that a request names for an export: the maximum number of fields, their names, and refused paths."""

from __future__ import annotations

import pytest

from identity.exports.export_fields import InvalidFields, fields_of

KNOWN = ("email", "name", "user_metadata")


def named(count: int) -> list[dict[str, str]]:
    return [{"name": "email", "export_as": f"column {number}"} for number in range(count)]


@pytest.mark.parametrize(("is_table", "most"), [(True, 30), (False, 100)])
def test_an_export_has_a_limited_number_of_fields(is_table: bool, most: int) -> None:
    assert len(fields_of(named(most), is_table=is_table, known=KNOWN)) == most
    with pytest.raises(InvalidFields) as refused:
        fields_of(named(most + 1), is_table=is_table, known=KNOWN)
    assert (refused.value.reason, refused.value.path) == (f"Array is too long ({most + 1}), maximum {most}", "fields")


def test_the_name_of_a_field_is_its_path_or_the_name_in_the_request() -> None:
    asked = [{"name": "email"}, {"name": "name", "export_as": "Full name"}, {"name": "user_metadata.plan", "export_as": ""}]
    fields = fields_of(asked, is_table=True, known=KNOWN)
    assert [(field.path, field.name) for field in fields] == [
        ("email", "email"),
        ("name", "Full name"),
        ("user_metadata.plan", "user_metadata.plan"),
    ]


@pytest.mark.parametrize(
    ("asked", "is_table", "reason", "path"),
    [
        ([{"name": "x" * 70}], False, f"Users have no field {'x' * 64}", "fields[0]"),
        ([{"name": "email"}, {"name": "email..name"}], False, "Must be a path, such as identities[0].connection", "fields[1]"),
        ([{"name": "email"}, {"name": "name", "export_as": "email"}], False, "Two fields with the same name", "fields[1]"),
        ([{"name": "user_metadata"}], True, "In a CSV export, name one member of the metadata, such as app_metadata.plan", "fields[0]"),
    ],
)
def test_the_refusal_of_an_invalid_field_contains_the_position_of_the_field(
    asked: list[dict[str, str]], is_table: bool, reason: str, path: str
) -> None:
    with pytest.raises(InvalidFields) as refused:
        fields_of(asked, is_table=is_table, known=KNOWN)
    assert (refused.value.reason, refused.value.path) == (reason, path)


def test_a_json_export_can_contain_all_metadata() -> None:
    assert [field.path for field in fields_of([{"name": "user_metadata"}], is_table=False, known=KNOWN)] == ["user_metadata"]
