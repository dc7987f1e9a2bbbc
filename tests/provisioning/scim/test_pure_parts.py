"""Tests of filters, PATCH bodies, `Retry-After`, secrets, options and masking, partly with generated input."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.outbound.retry_after import retry_after
from provisioning.mapping.schemas import ENTERPRISE_USER, PATCH_OP, USER
from provisioning.runs.exchanges import MAX_BODY_CHARACTERS, ExchangeRecorder
from provisioning.runs.failures import Misconfigured
from provisioning.runs.masking import Mask, one_line
from provisioning.scim import filters, patch
from provisioning.scim.instants import same_instant
from provisioning.scim.options import OptionsRefused, ScimOptions, parse_options, rate_of
from provisioning.scim.profiles import PROFILES
from provisioning.scim.settings import SecretRefused, budget_warning, check_secret, parse_base_url, parse_settings

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NEEDED = {"SCIM_BASE_URL": "https://scim.example.test/v2/", "SCIM_BEARER_TOKEN": "token"}


@given(TEXTS)
def test_any_filter_value_is_one_json_string(value: str) -> None:
    text = filters.equals("externalId", value)
    assert text.startswith("externalId eq ")
    assert json.loads(text.removeprefix("externalId eq ")) == value


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123Z", True),
        ("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05Z", True),
        ("2026-01-02T03:04:05.9999999Z", "2026-01-02T03:04:06Z", True),
        ("2026-01-02T03:04:05Z", "2026-01-02T05:04:05.000+02:00", True),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z", True),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", False),
        ("2026-01-02T03:04:05.123Z", "2026-01-02T03:04:05.124Z", False),
        ("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.125Z", False),
        ("last year", "last year", True),
        ("last year", "2026-01-02T03:04:05Z", False),
        ("2026-13-02T03:04:05Z", "2026-01-02T03:04:05Z", False),
        ("0001-01-01T00:00:00+02:00", "0001-01-01T00:00:00Z", False),
    ],
)
def test_times_are_compared_at_the_coarser_precision(one: str, other: str, is_same: bool) -> None:
    assert same_instant(one, other) is same_instant(other, one) is is_same


@given(TEXTS)
def test_decoding_the_query_string_returns_the_unchanged_filter(value: str) -> None:
    text = filters.equals("userName", value)
    query = filters.query(text)
    assert query.isascii()
    assert parse_qs(query, strict_parsing=True) == {"filter": [text]}


def test_a_filter_value_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        filters.equals("externalId", "a\ud800")


RESOURCES = st.dictionaries(
    st.from_regex(r"[a-zA-Z]{1,10}", fullmatch=True), TEXTS | st.booleans() | st.lists(st.dictionaries(TEXTS, TEXTS)), max_size=6
)


@given(RESOURCES)
def test_a_patch_without_a_path_replaces_the_whole_user(resource: dict[str, Any]) -> None:
    assert patch.whole_user(resource) == {"schemas": [PATCH_OP], "Operations": [{"op": "replace", "value": resource}]}


@given(RESOURCES, st.dictionaries(st.from_regex(r"[a-z]{1,10}", fullmatch=True), TEXTS), st.lists(TEXTS))
def test_the_patch_per_attribute_has_one_operation_for_each_attribute(
    resource: dict[str, Any], extension: dict[str, str], removed: list[str]
) -> None:
    message = patch.per_attribute({"schemas": [USER], **resource, ENTERPRISE_USER: extension}, removed)
    replaced = {operation["path"]: operation["value"] for operation in message["Operations"] if operation["op"] == "replace"}
    expected = {name: value for name, value in resource.items() if name != "schemas"}
    assert replaced == expected | {f"{ENTERPRISE_USER}:{name}": value for name, value in extension.items()}
    assert [operation["path"] for operation in message["Operations"] if operation["op"] == "remove"] == removed


@given(st.text(max_size=60))
def test_any_retry_after_header_is_either_ignored_or_between_a_second_and_a_day(value: str) -> None:
    seconds = retry_after({"retry-after": value}, NOW)
    assert seconds is None or 1 <= seconds <= 86_400


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 1.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("99999999999", 86_400.0),
        ("Sat, 21 Nov 2026 12:01:00 GMT", 60.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 1.0),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": value}, NOW) == seconds


@pytest.mark.parametrize(
    "url",
    [
        "scim.example.test/v2",
        "ftp://scim.example.test",
        "https://:443/",
        "https:///v2",
        "https://user@scim.example.test/",
        "https://user:word@scim.example.test/",
        "https://scim.example.test/v2?tenant=1",
        "https://scim.example.test/v2#users",
        "https://scim.example.test/v2/../admin",
        "https://scim.example.test/a b",
        "https://scim.example.test\\v2",
        "https://scim.example.test:99999/",
        "https://scim.example.test:0/",
        "https://scïm.example.test/",
        "https://[::1/",
        "http://scim.example.test/",
        "Bearer abc",
    ],
)
def test_an_unusable_base_url_is_refused_and_the_error_does_not_repeat_the_url(url: str) -> None:
    with pytest.raises(SecretRefused) as refused:
        parse_base_url(url, allow_http=False)
    assert url not in str(refused.value)


def test_trailing_slashes_are_removed_and_plain_http_requires_the_setting() -> None:
    assert parse_base_url("https://scim.example.test/v2///", allow_http=False) == "https://scim.example.test/v2"
    assert parse_base_url("http://127.0.0.1:8080/", allow_http=True) == "http://127.0.0.1:8080"


@pytest.mark.parametrize("name", ["SCIM_TIMEOUT_MS", "SCIM_MAX_RETRIES"])
@pytest.mark.parametrize("value", ["-1", "1.5", "abc", "1e3", "1_000", "٣", "99999999999", "0x10", "+5"])
def test_an_invalid_number_is_refused_with_a_message(name: str, value: str) -> None:
    with pytest.raises(SecretRefused, match=f"{name} must be a whole number from"):
        check_secret(name, value, allow_http=False)


def test_a_timeout_of_zero_is_refused_and_zero_retries_are_accepted() -> None:
    with pytest.raises(SecretRefused):
        check_secret("SCIM_TIMEOUT_MS", "0", allow_http=False)
    check_secret("SCIM_MAX_RETRIES", "0", allow_http=False)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", " leading", "trailing ", "zoë", "nul\x00"])
def test_a_token_with_invalid_characters_is_refused_and_not_repeated_in_the_error(token: str) -> None:
    with pytest.raises(SecretRefused) as refused:
        check_secret("SCIM_BEARER_TOKEN", token, allow_http=False)
    assert token not in str(refused.value)


def test_missing_and_empty_settings_get_the_specified_defaults() -> None:
    for extra in ({}, {"SCIM_TIMEOUT_MS": "", "SCIM_MAX_RETRIES": " ", "SCIM_CONNECTION_ALLOWLIST": " , ,"}):
        parsed = parse_settings({**NEEDED, **extra}, allow_http=False)
        assert (parsed.base_url, parsed.timeout_ms, parsed.max_retries) == ("https://scim.example.test/v2", 1500, 1)
        assert parsed.allows("anything")
        assert parsed.allows("")


def test_values_of_the_allow_list_are_trimmed_and_compared_exactly() -> None:
    parsed = parse_settings({**NEEDED, "SCIM_CONNECTION_ALLOWLIST": " people ,, Staff "}, allow_http=False)
    assert [parsed.allows(name) for name in ("people", "Staff", "staff", "people1", "")] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("left", "named"), [({}, "SCIM_BASE_URL, SCIM_BEARER_TOKEN"), ({"SCIM_BASE_URL": "https://a.test"}, "SCIM_BEARER_TOKEN")]
)
def test_the_error_names_every_missing_secret(left: dict[str, str], named: str) -> None:
    with pytest.raises(Misconfigured, match=f"missing required secret: {named}$"):
        parse_settings(left, allow_http=False)


def test_the_token_is_not_in_the_repr_of_the_settings() -> None:
    assert "token" not in repr(parse_settings(NEEDED, allow_http=False)).replace("bearer_token", "")


def test_the_budget_warning_shows_the_worst_case_duration() -> None:
    assert budget_warning(1500, 1) == ""
    warning = budget_warning(1500, 2)
    assert "3 x (3 x 1500 ms + 750 ms of pauses) = 15750 ms" in warning
    assert "10000 ms" in warning


@pytest.mark.parametrize(
    "options",
    [
        {"server_profile": "nobody"},
        {"server_profile": None},
        {"requests_per_second": 0.1},
        {"requests_per_second": True},
        {"requests_per_second": float("nan")},
        {"mode": "put"},
        {"update_mode": "post"},
        {"upsert": "yes"},
        {"adopt_on_conflict": 1},
        {"update_mode": None},
        {"scope": None},
        {"scope": ["email"]},
        {"scope": "email | ]"},
        {"scope": "nope(email)"},
        {"scope": " "},
        {"scope": "a" * 513},
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsRefused):
        parse_options(options)


def test_the_server_profile_sets_defaults_for_missing_options() -> None:
    slack, google = parse_options({"server_profile": "slack"}), parse_options({"server_profile": "google"})
    assert (slack.requests_per_second, google.update_mode) == (3, "patch_per_attribute")
    assert rate_of({"server_profile": "slack"}) == 3.0
    own = {"server_profile": "slack", "requests_per_second": None, "update_mode": "patch_per_attribute"}
    assert (parse_options(own).requests_per_second, rate_of(own), parse_options(own).update_mode) == (None, None, "patch_per_attribute")


def test_every_profile_has_an_update_mode_that_can_remove_an_attribute() -> None:
    assert {profile.update_mode for profile in PROFILES.values()} == {"put", "patch_per_attribute"}


@pytest.mark.parametrize("name", list(PROFILES))
def test_every_known_server_has_valid_options(name: str) -> None:
    profile = PROFILES[name]
    explicit = {"update_mode": profile.update_mode, "requests_per_second": profile.requests_per_second}
    assert parse_options({"server_profile": name}) == parse_options({"server_profile": name, **explicit})
    assert profile.label
    assert all(note.endswith(".") for note in profile.notes)


def test_options_have_the_defaults_of_the_specification() -> None:
    assert parse_options({}) == ScimOptions(update_mode="put", upsert=False, adopt_on_conflict=False, enterprise=False)


@given(secret=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=6), before=TEXTS, after=TEXTS)
def test_a_secret_is_masked_in_every_encoding(secret: str, before: str, after: str) -> None:
    mask = Mask([secret])
    for text in (f"{before}{secret}{after}", json.dumps({"echo": secret}), f"/Users?{filters.query(secret)}"):
        masked = mask.text(text)
        assert secret not in masked or secret in (before + "***" + after)


@pytest.mark.parametrize("secret", ['quo"te\\slash', "ümlaut-€uro", "a+b/c=d&e f"])
def test_an_encoded_secret_is_masked_completely(secret: str) -> None:
    mask = Mask([secret])
    for ascii_only in (True, False):
        assert mask.text(json.dumps({"echo": secret}, ensure_ascii=ascii_only)) == '{"echo": "***"}'
    assert mask.text(f"/Users?token={quote(secret, safe='')}&page=1") == "/Users?token=***&page=1"


def test_a_recorded_exchange_is_masked_before_it_is_truncated() -> None:
    recorder = ExchangeRecorder(Mask(["secret-token"]))
    exchange = recorder.begin(
        "POST", "/Users", {"Authorization": "Bearer secret-token"}, b"x" * (MAX_BODY_CHARACTERS - 5) + b"secret-token"
    )
    recorder.answered(exchange, 200, {"Set-Cookie": "a=b", "X-Echo": "secret-token"}, b"\x00\xff secret-token", 1.0)
    kept = recorder.documents()[0]
    assert "secr" not in json.dumps(kept)
    assert kept["request_headers"]["Authorization"] == "***"
    assert kept["response_headers"] == {"Set-Cookie": "***", "X-Echo": "***"}
    assert "\x00" not in kept["response_body"]
    assert len(kept["request_body"]) < MAX_BODY_CHARACTERS + 40


@given(st.text(max_size=600), st.integers(1, 300))
def test_a_log_line_is_short_and_has_no_control_characters(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    assert "\n" not in line


def test_a_date_in_retry_after_is_relative_to_the_given_time() -> None:
    assert retry_after({"Retry-After": "Sat, 21 Nov 2026 12:01:00 GMT"}, NOW + timedelta(seconds=30)) == 30
