"""The phone numbers to which the service sends text messages, and the numbers that it refuses."""

from __future__ import annotations

import pytest

from identity.messages.numbers import CountryRefused, NumberKindRefused, NumberOdd, NumberRefused, masked_number, normalized_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+49 151 12345678", "+4915112345678"),
        ("+49 (0)151 123 456-78", "+4915112345678"),
        ("0049 151 12345678", "+4915112345678"),
        ("+1 (415) 555-2671", "+14155552671"),
        ("+81 90-1234-5678", "+819012345678"),
    ],
)
def test_a_number_is_normalized(text: str, number: str) -> None:
    assert normalized_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "0151 12345678",
        "+49 12",
        "+49151123456789012",
        "+999 123456789",
        "call me",
        "+4915112345678;ext=12",
        "+1 415 555 26",
        "+" * 50,
    ],
)
def test_an_incomplete_number_is_refused(text: str) -> None:
    with pytest.raises(NumberOdd):
        normalized_number(text)


@pytest.mark.parametrize(
    "text", ["+49 900 1234567", "+44 9012345678", "+1 900 234 5678", "+1 800 234 5678", "+44 7012345678", "+882 13300655"]
)
def test_premium_and_service_numbers_are_refused(text: str) -> None:
    with pytest.raises(NumberRefused) as refused:
        normalized_number(text)
    assert isinstance(refused.value, NumberKindRefused | NumberOdd)


def test_a_premium_number_gets_a_specific_error() -> None:
    with pytest.raises(NumberKindRefused):
        normalized_number("+49 900 1234567")


@pytest.mark.parametrize("text", ["+4915112345678\r\nTo: +4915112345679", "+4915112345678\n", "+49151\n12345678"])
def test_no_line_break_is_kept_in_a_number(text: str) -> None:
    try:
        assert normalized_number(text) == "+4915112345678"
    except NumberOdd:
        return


def test_a_number_of_a_country_that_is_not_allowed_is_refused() -> None:
    assert normalized_number("+4915112345678", countries=("DE",)) == "+4915112345678"
    with pytest.raises(CountryRefused):
        normalized_number("+14155552671", countries=("DE", "AT"))


def test_a_refusal_does_not_repeat_the_number() -> None:
    with pytest.raises(NumberRefused) as refused:
        normalized_number("+49 900 1234567")
    assert "1234567" not in str(refused.value)
    assert masked_number("+4915112345678") == "+49…78"
