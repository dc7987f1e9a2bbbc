"""The user of an assertion, and the parts of the assertion that become the profile."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.claims import EMAIL_FORMAT, NAME_IDENTIFIER, TRANSIENT, NameId, Statement, claims_of

XMLSOAP = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"


def statement(name_id: NameId | None = NameId("248289"), **attributes: str) -> Statement:  # noqa: B008  (frozen)
    return Statement("https://idp.example.test", name_id, {name: (value,) for name, value in attributes.items()})


def refused(given: Statement, **more: Any) -> str:
    with pytest.raises(UpstreamFailed) as error:
        claims_of(given, **more)
    assert error.value.case is LoginCase.UPSTREAM_PROFILE_REFUSED
    return error.value.detail


def test_the_name_id_of_the_subject_identifies_the_user() -> None:
    assert claims_of(statement()) == {"sub": "248289"}


def test_a_transient_name_id_identifies_no_user() -> None:
    told = refused(statement(NameId("_abc", TRANSIENT), mail="a@example.test"))
    assert "transient" in told
    assert "mail" in told
    assert "a@example.test" not in told


def test_the_error_for_an_assertion_without_a_name_contains_its_attributes() -> None:
    assert "The assertion has no attributes" in refused(statement(None))
    named = Statement("i", None, {NAME_IDENTIFIER: ("7",)})
    assert claims_of(named)["sub"] == "7"


def test_a_configured_attribute_identifies_the_user_instead_of_the_name_id() -> None:
    assert claims_of(statement(employee="e-1"), user_id_attributes=("employee",))["sub"] == "e-1"
    assert claims_of(statement(employee="e-1"), fields=[("user_id", ("badge", "employee"))])["sub"] == "e-1"
    assert "employee" in refused(statement(mail="a@example.test"), user_id_attributes=("employee",))
    # The attribute name NAME_IDENTIFIER means the NameID.
    assert claims_of(statement(), user_id_attributes=(NAME_IDENTIFIER,))["sub"] == "248289"
    assert refused(statement(NameId("_abc", TRANSIENT)), user_id_attributes=(NAME_IDENTIFIER,))


@pytest.mark.parametrize("subject", ["s" * 256, "a\ud800"])
def test_an_identifier_that_cannot_be_stored_is_refused(subject: str) -> None:
    assert refused(statement(NameId(subject)))


def test_attributes_with_common_names_fill_the_profile_without_a_mapping() -> None:
    given = Statement(
        "i",
        NameId("7"),
        {
            f"{XMLSOAP}emailaddress": ("ada@example.test",),
            "urn:oid:2.5.4.42": ("Ada",),
            "sn": ("Lovelace",),
            "displayName": (" ", "Ada Lovelace"),
            "unknown": ("x",),
        },
    )
    assert claims_of(given) == {
        "sub": "7",
        "email": "ada@example.test",
        "given_name": "Ada",
        "family_name": "Lovelace",
        "name": "Ada Lovelace",
    }


def test_a_mapping_replaces_the_common_names() -> None:
    given = statement(mail="common@example.test", work="work@example.test", verified="TRUE")
    fields = [("email", ("work",)), ("email_verified", ("verified",))]
    assert claims_of(given, fields=fields) == {"sub": "248289", "email": "work@example.test", "email_verified": "true"}
    assert "email" not in claims_of(given, fields=[("email", ("home",))])


def test_a_name_id_that_is_an_email_address_is_used_as_the_address() -> None:
    assert claims_of(statement(NameId("ada@example.test", EMAIL_FORMAT)))["email"] == "ada@example.test"
    assert claims_of(statement(NameId("ada@example.test", EMAIL_FORMAT), mail="other@example.test"))["email"] == "other@example.test"


def test_addresses_are_verified_if_the_connection_trusts_its_provider() -> None:
    given = statement(mail="a@example.test")
    assert "email_verified" not in claims_of(given)
    assert claims_of(given, trusts_emails=True)["email_verified"] is True
    assert claims_of(statement(mail="a@example.test", email_verified="true"), trusts_emails=False)["email_verified"] is False
