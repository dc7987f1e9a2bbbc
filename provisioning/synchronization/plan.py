"""The plan of a synchronization, and the rule that links accounts without a correlation key. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from foundation.expressions.language import ExpressionFailed, ExpressionRefused, compile_expression
from provisioning.mapping.paths import PathRefused, ScimPath, parse_path

NO_MATCH = "none"
USER_NAME = "userName"
MOST_PER_SECOND = 1000
# A whole number, or a percentage.
DELETION_LIMIT = r"[0-9]{1,9}|(100|[0-9]{1,2}(\.[0-9]{1,3})?)%"
_EMAILS = ("emails.value", 'emails[type eq "work"].value')


class PlanRefused(ValueError):
    """The plan is invalid; `name` is the name of the invalid member."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


@dataclass(frozen=True)
class MatchRule:
    """The attribute by which an account without `externalId` is matched with a user.

    `source` is an expression over the user document. Without `source`, the value is the email address, which must be verified,
    because an attacker can sign up with any unverified address.
    """

    path: ScimPath
    source: str = ""

    def value_of(self, document: Mapping[str, Any]) -> str:
        """Return the value that the account must have; an empty string if the user has no trusted value."""
        if not self.source:
            return str(document.get("email") or "") if document.get("email_verified") is True else ""
        try:
            value = compile_expression(self.source)(document)
        except ExpressionFailed:
            return ""
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() else ""

    def is_equal(self, found: Any, value: str) -> bool:
        """Compare names and addresses case-insensitively, as RFC 7643 does, and other values exactly."""
        text = found if isinstance(found, str) else str(found)
        return text == value if self.source else text.casefold() == value.casefold()


@dataclass(frozen=True)
class Plan:
    """The parameters of a synchronization. `deletion_limit` is a number of accounts, or a percentage of the managed accounts (`5%`)."""

    is_dry_run: bool = False
    match: str = USER_NAME
    rate: int = 20
    enables_stream: bool = False
    deletes_missing: bool = False
    deletion_limit: str = "10"
    shows_values: bool = False
    only_reports: bool = False

    @property
    def writes(self) -> bool:
        return not (self.is_dry_run or self.only_reports)

    def as_document(self) -> dict[str, Any]:
        """Return the plan as the JSON object stored in its job."""
        return asdict(self)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Plan:
        """Parse the result of `as_document`."""
        return cls(**document)

    def most_deletions(self, managed: int) -> int:
        """Return the number of accounts that may be deleted without approval; `managed` is the number of accounts with our key."""
        if self.deletion_limit.endswith("%"):
            return int(managed * float(self.deletion_limit[:-1]) / 100)
        return int(self.deletion_limit)


def checked(plan: Plan) -> Plan:
    """Return the plan; raise `PlanRefused` for an invalid member."""
    match_rule(plan.match)
    if not 1 <= plan.rate <= MOST_PER_SECOND:
        raise PlanRefused("rate", f"The rate is a number of users per second from 1 to {MOST_PER_SECOND}.")
    if not re.fullmatch(DELETION_LIMIT, plan.deletion_limit):
        raise PlanRefused("deletion_limit", "The limit of deletions is a whole number such as 10, or a percentage such as 5%.")
    if plan.enables_stream and not plan.writes:
        raise PlanRefused("enable", "A dry run or comparison cannot enable the stream.")
    return plan


def match_rule(text: str) -> MatchRule | None:
    """Parse `none`, `userName`, `emails.value`, or `<SCIM path>=<JMESPath expression>`; raise `PlanRefused`."""
    if text == NO_MATCH:
        return None
    path, _, source = text.partition("=") if not _is_plain(text) else (text, "", "")
    if not source and not _is_plain(text):
        known = ", ".join((NO_MATCH, USER_NAME, *_EMAILS))
        raise PlanRefused(
            "match", f"An attribute other than {known} needs the expression it is compared with: employeeNumber=app_metadata.number."
        )
    try:
        if source:
            compile_expression(source)
        return MatchRule(parse_path(path.strip()), source.strip())
    except (PathRefused, ExpressionRefused) as error:
        raise PlanRefused("match", str(error)) from error


def _is_plain(text: str) -> bool:
    return text == USER_NAME or text in _EMAILS
