"""Which account in the response to a lookup is the account of the user, and when an equal user name proves this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from provisioning.mapping.table import Person
from provisioning.scim.matches import Ambiguous, Match, NoMatch, Taken, Unverifiable, by_external_id, by_user_name
from provisioning.scim.name_proof import proves_name
from provisioning.scim.options import ScimOptions

ANN = Person("database|ann", "ann@example.test")
PROVEN = replace(ANN, proves_name=True)
KEYED = {"id": "1", "externalId": "database|ann", "userName": "ann@example.test"}
NAMED = {"id": "1", "userName": "ann@example.test"}
VERIFIED = {"email": "ann@example.test", "email_verified": True}


@dataclass(frozen=True)
class Links:
    """The links of accounts, by id. `rivals` are linked to other users. `kin` are linked to the same user by another action."""

    rivals: frozenset[str] = frozenset()
    kin: frozenset[str] = frozenset()
    is_key_shared: bool = False

    def is_rival(self, resource: Mapping[str, Any]) -> bool:
        return resource["id"] in self.rivals

    def is_own(self, remote_id: str) -> bool:
        return False

    def is_kin(self, remote_id: str) -> bool:
        return remote_id in self.kin


NO_LINKS = Links()
OF_ANOTHER_USER = Links(rivals=frozenset({"1"}))


def test_an_account_with_our_key_matches_unless_it_is_linked_to_another_user() -> None:
    assert by_external_id([KEYED], ANN, NO_LINKS) == Match("1", "externalId", KEYED)
    assert by_external_id([KEYED], ANN, OF_ANOTHER_USER) == NoMatch(foreign=1)
    assert by_user_name([KEYED], PROVEN, OF_ANOTHER_USER) == Taken("1")


def test_two_accounts_with_our_key_are_ambiguous_unless_one_of_them_is_linked() -> None:
    second = {**KEYED, "id": "2"}
    assert by_external_id([KEYED, second], ANN, NO_LINKS) == Ambiguous(("1", "2"))
    assert by_external_id([KEYED, second], ANN, Links(kin=frozenset({"2"}))) == Match("2", "externalId", second)


def test_an_account_with_an_equal_user_name_matches_only_if_the_name_is_proven() -> None:
    assert by_user_name([NAMED], PROVEN, NO_LINKS) == Match("1", "userName", NAMED)
    assert isinstance(by_user_name([NAMED], ANN, NO_LINKS), Unverifiable)


def test_a_proven_name_matches_no_account_that_has_another_key_or_another_user() -> None:
    assert by_user_name([{**NAMED, "externalId": "hr|1"}], PROVEN, NO_LINKS) == Taken("1")
    assert by_user_name([NAMED], PROVEN, OF_ANOTHER_USER) == Taken("1")
    assert by_user_name([NAMED, {**NAMED, "id": "2"}], PROVEN, NO_LINKS) == Ambiguous(("1", "2"))


@pytest.mark.parametrize(
    ("document", "strategy", "is_proven"),
    [
        (VERIFIED, "database", True),
        ({**VERIFIED, "email": "ANN@example.test"}, "database", True),
        (VERIFIED, "oidc", False),
        ({**VERIFIED, "email_verified": False}, "database", False),
        ({**VERIFIED, "email_verified": "true"}, "database", False),
        ({"email": "ann@example.test"}, "database", False),
        ({**VERIFIED, "email": "other@example.test"}, "database", False),
        ({"email_verified": True}, "database", False),
    ],
)
def test_a_verified_address_of_a_trusted_connection_proves_a_user_name(document: dict[str, Any], strategy: str, is_proven: bool) -> None:
    trusted = frozenset({"database", "email"})
    assert proves_name(document, ANN, ScimOptions(user_name_proof="verified"), strategy=strategy, trusted_strategies=trusted) is is_proven
    assert proves_name(document, ANN, ScimOptions(user_name_proof="always"), strategy=strategy, trusted_strategies=trusted)
    assert not proves_name(document, ANN, ScimOptions(user_name_proof="never"), strategy=strategy, trusted_strategies=trusted)


def test_an_option_makes_verified_addresses_of_every_connection_a_proof() -> None:
    options = ScimOptions(user_name_proof="verified", trust_connection_addresses=True)
    assert proves_name(VERIFIED, ANN, options, strategy="oidc", trusted_strategies=frozenset())
    assert not proves_name({**VERIFIED, "email_verified": False}, ANN, options, strategy="oidc", trusted_strategies=frozenset())
