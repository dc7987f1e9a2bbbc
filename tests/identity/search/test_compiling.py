"""How values in a query are compiled for each kind of field, such as dates or JSON, and how invalid values are refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from identity.search.compiling import compiled_search
from identity.search.conditions import DomainIs, HasValue, IdentityIs, JsonHolds, Never, TextBetween, ValueIs, ValueWithin
from identity.search.queries import InvalidSearch


def moment(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("created_at:2026", moment(2026, 1, 1), moment(2027, 1, 1)),
        ("created_at:2026-12", moment(2026, 12, 1), moment(2027, 1, 1)),
        ("created_at:2026-01-31", moment(2026, 1, 31), moment(2026, 2, 1)),
        ('created_at:"2026-01-31T10:00:05Z"', moment(2026, 1, 31, 10, 0, 5), moment(2026, 1, 31, 10, 0, 6)),
        # Responses truncate times to milliseconds, and rows contain microseconds. So the range contains the whole millisecond.
        ('created_at:"2026-01-31T10:00:05.123Z"', moment(2026, 1, 31, 10, 0, 5, 123000), moment(2026, 1, 31, 10, 0, 5, 124000)),
        ('created_at:"2026-01-31T10:00+02:00"', moment(2026, 1, 31, 8), moment(2026, 1, 31, 8, 1)),
        ("created_at:[2026-01-01 TO *]", moment(2026, 1, 1), None),
        ("created_at:{2026-01-01 TO *]", moment(2026, 1, 2), None),
        ("created_at:[* TO 2026-01-31]", None, moment(2026, 2, 1)),
        ("created_at:[* TO 2026-01-31}", None, moment(2026, 1, 31)),
        ("created_at:9999", moment(9999, 1, 1), datetime.max.replace(tzinfo=UTC)),
        ("logins_count:>2", 3, None),
        ("logins_count:[0 TO 5}", 1, 5),
        ("_exists_:logins_count", 1, None),
    ],
)
def test_dates_and_numbers_are_compiled_to_ranges(text: str, start: object, end: object) -> None:
    compiled = compiled_search(text)
    assert isinstance(compiled, ValueWithin)
    assert (compiled.start, compiled.end) == (start, end)


def test_each_kind_of_field_is_compiled_to_its_own_comparison() -> None:
    assert compiled_search("email_verified:false") == ValueIs("email_verified", value=False, needs="email")
    assert compiled_search("email.domain:Corp.com") == DomainIs("email", "Corp.com")
    assert compiled_search('last_ip:"2001:db8::0001"') == ValueIs("last_ip", "2001:db8::1")
    assert compiled_search("_exists_:blocked") == HasValue("blocked", is_text=False)
    assert compiled_search("name:[a TO b}") == TextBetween("name", "a", "b", includes_low=True, includes_high=False, is_folded=True)
    assert compiled_search("identities.isSocial:true") == IdentityIs("isSocial", "true")
    for nothing in ('name:""', "last_ip:x", "logins_count:0", "email.domain:a@b"):
        assert compiled_search(nothing) == Never(), nothing


def test_quotes_and_backslashes_in_a_value_are_escaped_in_the_json_path() -> None:
    found = compiled_search(r'app_metadata.a\"b:"x\" || $.y == \"z\\"')
    assert found == JsonHolds("app_metadata", r'$."a\"b" == "x\" || $.y == \"z\\"', is_indexed=True)
    assert compiled_search("multifactor:guardian") == JsonHolds("multifactor", '$ == "guardian"', is_indexed=False)
    assert compiled_search("app_metadata.n:42") == JsonHolds("app_metadata", '$."n" == "42" || $."n" == 42', is_indexed=True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nosuch:x", "the field nosuch is unknown; known fields: user_id, email"),
        ("identities:x", "is unknown; known fields:"),
        ("identities.connection:a*", "needs a whole value"),
        ("identities.isSocial:maybe", "must be true or false"),
        ("app_metadata:x", "app_metadata needs a key"),
        ("user_metadata.a:x*", "does not support wildcards and ranges"),
        ("user_metadata.a:[1 TO 2]", "does not support wildcards and ranges"),
        ("blocked:yes", "blocked must be true or false, not yes"),
        ("blocked:[a TO b]", "does not support ranges"),
        ("blocked:tr*", "does not support wildcards"),
        ("created_at:soon", "soon is not a date"),
        ("created_at:2026-13-01", "is not a date"),
        ("created_at:[0000 TO *]", "is not a date"),
        ("logins_count:many", "needs an integer"),
        ("logins_count:99999999999", "needs an integer"),
        ("email.domain:c*", "needs a whole domain"),
        ("[a TO b]", "a range needs a field"),
        ("a " * 17, "a term without a field counts 8 times"),
        (" OR ".join(f"identities.user_id:{n}" for n in range(33)), "more than 32 terms on identities"),
    ],
)
def test_an_invalid_value_is_refused_with_an_explanation(text: str, reason: str) -> None:
    with pytest.raises(InvalidSearch, match=reason):
        compiled_search(text)
