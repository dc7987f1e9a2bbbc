"""Each kind of id has its own prefix, length and alphabet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from foundation import ids

ALPHANUMERIC, BASE58 = "[A-Za-z0-9]", "[1-9A-HJ-NP-Za-km-z]"
SHAPES: tuple[tuple[Callable[[], str], str], ...] = (
    (ids.new_client_grant_id, f"cgr_{ALPHANUMERIC}{{16}}"),
    (ids.new_client_id, f"{ALPHANUMERIC}{{32}}"),
    (ids.new_connection_id, f"con_{ALPHANUMERIC}{{16}}"),
    (ids.new_credential_id, f"cred_{BASE58}{{22}}"),
    (ids.new_custom_domain_id, f"cd_{ALPHANUMERIC}{{16}}"),
    (ids.new_device_credential_id, f"dcr_{ALPHANUMERIC}{{16}}"),
    (ids.new_domain_token, f"{ALPHANUMERIC}{{43}}"),
    (ids.new_event_id, f"evt_{BASE58}{{22}}"),
    (ids.new_exchange_profile_id, f"tep_{ALPHANUMERIC}{{16}}"),
    (ids.new_factor_id, f"dev_{ALPHANUMERIC}{{16}}"),
    (ids.new_group_id, f"grp_{BASE58}{{22}}"),
    (ids.new_hex_id, "[0-9a-f]{24}"),
    (ids.new_invitation_id, f"uinv_{ALPHANUMERIC}{{16}}"),
    (ids.new_job_id, f"job_{ALPHANUMERIC}{{16}}"),
    (ids.new_organization_id, f"org_{ALPHANUMERIC}{{16}}"),
    (ids.new_refresh_token_id, f"rt_{ALPHANUMERIC}{{22}}"),
    (ids.new_role_id, f"rol_{ALPHANUMERIC}{{16}}"),
    (ids.new_session_id, f"ses_{ALPHANUMERIC}{{22}}"),
    (ids.new_sign_in_id, f"log_{ALPHANUMERIC}{{22}}"),
    (ids.new_staff_factor_id, f"sfa_{ALPHANUMERIC}{{22}}"),
    (ids.new_stream_id, f"est_{BASE58}{{22}}"),
    (ids.new_ticket_id, f"tkt_{ALPHANUMERIC}{{22}}"),
)


@pytest.mark.parametrize(("new", "shape"), SHAPES, ids=[new.__name__ for new, _ in SHAPES])
def test_an_id_has_its_prefix_and_random_characters_of_its_alphabet(new: Callable[[], str], shape: str) -> None:
    drawn = [new() for _ in range(50)]
    assert [value for value in drawn if not re.fullmatch(shape, value)] == []
    assert len(set(drawn)) == len(drawn)


def test_every_function_that_creates_ids_is_checked() -> None:
    assert {name for name in vars(ids) if name.startswith("new_")} == {new.__name__ for new, _ in SHAPES}


@pytest.mark.parametrize(("alphabet", "size"), [(ids._ALPHANUMERIC, 62), (ids._BASE58, 58)])
def test_every_character_of_an_alphabet_occurs_once(alphabet: str, size: int) -> None:
    assert len(alphabet) == size
    assert Counter(alphabet).most_common(1)[0][1] == 1


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ("a-1", True), ("acme", True), ("1" * 63, True), ("ab", False), ("", False), ("a" * 64, False), ("-ab", False), ("ab-", False),
        ("Acme", False), ("a_b", False), ("a.b", False), ("abc\n", False),
    ],
)  # fmt: skip
def test_a_tenant_id_has_3_to_63_lower_case_letters_digits_and_inner_hyphens(value: str, *, is_valid: bool) -> None:
    assert ids.is_tenant_id(value) is is_valid
