"""Claims of providers as the profile of a user. Valid claims are used, and invalid claims do not prevent the login."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.upstream.profile import needs_userinfo, profile_of


def test_one_source_does_not_verify_the_address_of_another_source() -> None:
    # The id token says that its email address is verified, but contains no address. The userinfo contains an address.
    assert profile_of({"email_verified": True}, {"email": "eve@example.test"}, None) == {"email": "eve@example.test"}
    found = profile_of({"email": "ada@example.test"}, {"email": "eve@example.test", "email_verified": True}, None)
    assert found == {"email": "ada@example.test"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "no address"),
        ("email", "a" * 250 + "@x.at"),
        ("email", ["ada@example.test"]),
        ("name", ""),
        ("name", "  "),
        ("name", "n" * 301),
        ("name", "with\x00nul"),
        ("name", "with\x1bescape"),
        ("name", {"first": "Ada"}),
        ("given_name", "n" * 151),
        ("picture", "javascript:alert(1)"),
        ("picture", "data:text/html,x"),
        ("picture", "https://"),
        ("picture", "https://[x"),
        ("nickname", True),
    ],
)
def test_an_invalid_value_is_omitted(field: str, value: Any) -> None:
    assert profile_of({field: value}, {}, None) == {}


@pytest.mark.parametrize(("said", "kept"), [(True, True), ("true", True), (False, False), ("yes", False), (0, False), (None, False)])
def test_an_address_is_verified_only_by_true_or_the_text_true(said: Any, kept: bool) -> None:
    assert profile_of({"email": "ada@example.test", "email_verified": said}, {}, None)["email_verified"] is kept


def test_standard_claims_of_the_id_token_have_precedence_over_userinfo() -> None:
    claims = {"email": "ada@example.test", "email_verified": True, "name": "Ada", "preferred_username": "ada", "sub": "s"}
    userinfo = {"name": "Somebody", "given_name": "Ada", "picture": "https://x.example.test/a.png", "phone_number": "+431234567"}
    assert profile_of(claims, userinfo, None) == {
        "email": "ada@example.test",
        "email_verified": True,
        "name": "Ada",
        "nickname": "ada",
        "given_name": "Ada",
        "picture": "https://x.example.test/a.png",
        "phone_number": "+431234567",
        "phone_verified": False,
    }


def test_a_mapping_reads_the_id_token_and_userinfo_but_ignores_unknown_fields() -> None:
    attributes = {
        "name": "${context.tokenset.first} ${context.userinfo.last}",
        "nickname": "${context.tokenset.missing}",
        "blocked": "${context.tokenset.first}",
        "app_metadata": "${context.tokenset.first}",
    }
    attribute_map = {"mapping_mode": "use_map", "attributes": attributes}
    assert profile_of({"first": "Ada"}, {"last": "King"}, attribute_map) == {"name": "Ada King"}
    assert profile_of({"first": "Ada"}, {"last": "King"}, {**attribute_map, "mapping_mode": "basic_profile"}) == {}


@pytest.mark.parametrize(
    ("template", "claims", "userinfo", "kept"),
    [
        # The id token verifies its own email address, and the mapping selects another address.
        (
            "${context.tokenset.upn}",
            {"email": "eve@example.test", "email_verified": True, "upn": "ada@example.test"},
            {},
            ("ada@example.test", False),
        ),
        (
            "${context.userinfo.email}",
            {"email": "eve@example.test", "email_verified": True},
            {"email": "ada@example.test"},
            ("ada@example.test", False),
        ),
        (
            "${context.tokenset.given_name}@corp.test",
            {"email": "a@b.test", "email_verified": True, "given_name": "ada"},
            {},
            ("ada@corp.test", False),
        ),
        # The proof (`email_verified`) and the mapped email address have the same source.
        ("${context.tokenset.email}", {"email": "ada@example.test", "email_verified": True}, {}, ("ada@example.test", True)),
        (
            "${context.userinfo.email}",
            {"email": "eve@example.test", "email_verified": False},
            {"email": "ada@example.test", "email_verified": True},
            ("ada@example.test", True),
        ),
    ],
)
def test_the_proof_of_one_address_does_not_verify_another_mapped_address(
    template: str, claims: dict[str, Any], userinfo: dict[str, Any], kept: tuple[str, bool]
) -> None:
    attribute_map = {"mapping_mode": "use_map", "attributes": {"email": template}}
    found = profile_of(claims, userinfo, attribute_map)
    assert (found["email"], found.get("email_verified", False)) == kept


@pytest.mark.parametrize("attributes", [{}, {"email": "${context.tokenset.nickname}"}])
def test_the_proof_of_an_omitted_address_is_omitted(attributes: dict[str, str]) -> None:
    claims = {"email": "no address", "email_verified": True, "nickname": "no address either"}
    assert "email_verified" not in profile_of(claims, {}, {"mapping_mode": "use_map", "attributes": attributes})
    assert profile_of({}, {"email": ["ada@example.test"], "email_verified": True}, None) == {}


def test_userinfo_is_requested_only_if_a_claim_is_missing() -> None:
    assert needs_userinfo({"email": "ada@example.test"})
    assert not needs_userinfo({"email": "ada@example.test", "name": "Ada"})
