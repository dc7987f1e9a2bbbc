from __future__ import annotations

from typing import Any

import pytest

from identity.options.connection_options import (
    database_options,
    login_identifiers,
    options_problem,
    options_with_defaults,
    required_attributes,
    takes_username,
)
from identity.passwords import LONGEST

INACTIVE = {"identifier": {"active": False}}
REQUIRED = {"profile_required": True}


def test_values_of_the_request_replace_the_default_options() -> None:
    options = database_options({"passwordPolicy": "low", "import_mode": True})
    assert options["passwordPolicy"] == "low"
    assert options["import_mode"] is True
    assert options["mfa"]["active"] is True


def test_a_new_database_connection_has_the_options_that_deploy_tools_expect() -> None:
    assert database_options({}) == {
        "mfa": {"active": True, "return_enroll_settings": True},
        "passwordPolicy": "good",
        "passkey_options": {"challenge_ui": "both", "local_enrollment_enabled": True, "progressive_enrollment_enabled": True},
        "strategy_version": 2,
        "authentication_methods": {"password": {"enabled": True}, "passkey": {"enabled": False}},
        "brute_force_protection": True,
        "disable_self_service_change_password": False,
    }


@pytest.mark.parametrize(
    ("options", "mail"),
    [
        ({}, {"body": ""}),
        ({"email": None}, {"body": ""}),
        ({"email": {"subject": "Log in"}}, {"body": "", "subject": "Log in"}),
        ({"email": {"body": "Your code"}}, {"body": "Your code"}),
    ],
)
def test_an_email_connection_always_has_the_body_of_its_mail(options: dict[str, Any], mail: dict[str, str]) -> None:
    assert options_with_defaults("email", {"from": "x", **options}) == {"from": "x", "email": mail}
    assert options_with_defaults("sms", options) == options


@pytest.mark.parametrize(("strategy", "name"), [("oidc", "client_id"), ("okta", "client_id"), ("pingfederate", "pingFederateBaseUrl")])
def test_required_options_of_a_strategy_cannot_be_omitted(strategy: str, name: str) -> None:
    assert options_problem(strategy, {"issuer": "x"}, is_database=False) == f"Missing required property {name}."
    assert options_problem(strategy, {name: "value"}, is_database=False) is None
    assert options_problem("samlp", {}, is_database=False) is None


@pytest.mark.parametrize(
    "options",
    [
        {"attributes": []},
        {"attributes": {}},
        {"attributes": {"email": {}}, "validation": {}},
        {"passwordPolicy": ["good"]},
        {"password_complexity_options": "strict"},
        {"password_complexity_options": {"min_length": 0}},
        {"password_complexity_options": {"min_length": True}},
        {"password_complexity_options": {"min_length": 100_000}},
    ],
)
def test_contradictory_options_of_a_database_connection_are_refused(options: dict[str, Any]) -> None:
    assert options_problem("database", options, is_database=True) is not None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"requires_username": True}, True),
        ({"attributes": {"username": {}}}, True),
        ({"attributes": {"username": {"identifier": {"active": False}}}}, False),
        ({"attributes": {"email": {}}}, False),
        ({"attributes": "odd"}, False),
    ],
)
def test_the_options_determine_whether_users_can_have_user_names(options: dict[str, Any], expected: bool) -> None:
    assert takes_username(options) is expected


@pytest.mark.parametrize("shortest", [1, LONGEST])
def test_the_minimum_length_of_a_password_can_be_set_from_one_to_its_limit(shortest: int) -> None:
    assert options_problem("database", {"password_complexity_options": {"min_length": shortest}}, is_database=True) is None
    for beyond in (0, LONGEST + 1):
        problem = options_problem("database", {"password_complexity_options": {"min_length": beyond}}, is_database=True)
        assert problem == f"password_complexity_options.min_length must be a number from 1 to {LONGEST}."
    assert options_problem("database", {"password_complexity_options": {}}, is_database=True) is None


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"email": {}}, None),
        ({"email": INACTIVE}, "attributes must contain one active identifier"),
        ({"email": {}, "phone_number": "odd"}, None),
        ({"email": REQUIRED}, None),
        ({"email": {**REQUIRED, "signup": {"status": "required"}}}, None),
        ({"email": {**REQUIRED, "signup": {"status": "optional"}}}, "attribute email must also be required on signup"),
        ({"email": {"profile_required": 1, "signup": {"status": "optional"}}}, None),
        ({"email": {"signup": {"status": "optional"}}}, None),
    ],
)
def test_the_attributes_of_a_database_connection_are_checked(attributes: dict[str, Any], problem: str | None) -> None:
    assert options_problem("database", {"attributes": attributes}, is_database=True) == problem


@pytest.mark.parametrize("rival", ["requires_username", "validation"])
def test_the_option_named_attributes_cannot_be_set_together_with_an_older_option(rival: str) -> None:
    problem = options_problem("database", {"attributes": {"email": {}}, rival: None}, is_database=True)
    assert problem == f"Cannot set both options.attributes and options.{rival}"


@pytest.mark.parametrize(
    ("options", "identifiers", "required"),
    [
        ({}, ("email",), ()),
        ({"requires_username": True}, ("email", "username"), ()),
        ({"attributes": {"username": {}, "email": REQUIRED}}, ("email", "username"), ("email",)),
        (
            {"attributes": {"phone_number": {**REQUIRED, "identifier": {"active": True}}, "email": INACTIVE}},
            ("phone_number",),
            ("phone_number",),
        ),
        ({"attributes": {"email": {"identifier": {"active": None}}}}, ("email",), ()),
        ({"attributes": {"email": {"identifier": {"active": 0}, "profile_required": "yes"}}}, ("email",), ()),
    ],
)
def test_the_identifiers_and_the_required_attributes_are_read_from_the_options(
    options: dict[str, Any], identifiers: tuple[str, ...], required: tuple[str, ...]
) -> None:
    assert login_identifiers(options) == identifiers
    assert required_attributes(options) == required
