"""Checks that a verified assertion is for this service and this login, and valid now (SAML Profiles 2.0, 4.1.4.3). Pure.

Every refusal is a sentence for the administrator with the received and the expected value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.facts import BEARER, Assertion, Confirmation, Response, wire_instant
from authapi.upstream.saml.statuses import SUCCESS, status_words

# The tolerance for differences between the clocks of two servers. Administrators must correct a larger difference.
SKEW = timedelta(minutes=3)
# The id of each used assertion is stored until the assertion expires. A limit on the lifetime keeps the number of stored ids small.
LONGEST_LIFE = timedelta(days=1)
_SHOWN = 200


@dataclass(frozen=True)
class Expected:
    """What an answer must match. `request_id` is None for a login that the provider began. If `issuer` is empty, every issuer matches."""

    issuer: str
    audience: str
    recipients: frozenset[str]
    request_id: str | None
    now: datetime


def check_status(response: Response) -> None:
    """Raise `UpstreamFailed` with the provider's reason if the status of the response is not success."""
    if response.status_codes[:1] != (SUCCESS,):
        raise UpstreamFailed(LoginCase.UPSTREAM_DENIED, status_words(response.status_codes, response.status_message))


def check_response(response: Response, expected: Expected) -> None:
    """Check the parts of a response outside its assertion. Raises `UpstreamFailed`.

    These parts must match even if they are unsigned: an unexpected destination or request id means that the response was not made for this
    login.
    """
    if response.destination and response.destination not in expected.recipients:
        raise _refused(f"The Destination is '{_short(response.destination)}' and must be '{_one_of(expected.recipients)}'.")
    if not response.destination and response.is_signed:
        # SAML Bindings 2.0, 3.5.5.2.
        raise _refused("The signed response has no Destination.")
    _check_request(response.in_response_to, expected, where="The response")
    check_issuer(response.issuer, expected.issuer)


def check_assertion(assertion: Assertion, expected: Expected) -> datetime:
    """Check a verified assertion; return the time until which its use must be remembered. Raises `UpstreamFailed`."""
    check_issuer(assertion.statement.issuer, expected.issuer, is_required=True)
    if not assertion.id:
        raise _refused("The assertion has no ID.")
    if not assertion.has_authentication:
        raise _refused("The assertion has no AuthnStatement: it describes attributes, but no login.")
    check_audience(assertion.audiences, expected.audience)
    check_times("The assertion", assertion.not_before, assertion.not_on_or_after, expected.now)
    check_times("The session of the user", None, assertion.session_ends_at, expected.now)
    return _confirmed_until(assertion, expected) + SKEW


def check_issuer(issuer: str, expected: str, *, is_required: bool = False) -> None:
    """Compare the issuer with `expected`, the issuer in the metadata. `expected` may be empty. Raises `UpstreamFailed`."""
    if not issuer and not is_required:
        return
    if not issuer:
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The assertion has no Issuer.")
    if expected and issuer != expected:
        raise UpstreamFailed(
            LoginCase.UPSTREAM_ISSUER_MISMATCH,
            f"The Issuer is '{_short(issuer)}' but the metadata of the connection belongs to '{_short(expected)}'.",
        )


def check_audience(restrictions: tuple[tuple[str, ...], ...], audience: str) -> None:
    """Check that the assertion has an audience restriction, and that each restriction names this service. Raises `UpstreamFailed`."""
    if not restrictions:
        raise _refused(f"The assertion has no Audience. Enter '{audience}' as audience (SP entity id) at the provider.")
    for names in restrictions:
        if audience not in names:
            shown = ", ".join(f"'{_short(name)}'" for name in names[:3]) or "nothing"
            raise _refused(f"The Audience is {shown} and must be '{audience}'. Enter that as audience (SP entity id) at the provider.")


def check_times(what: str, not_before: datetime | None, not_on_or_after: datetime | None, now: datetime) -> None:
    """Check that `what`, such as the assertion, is valid now, with a tolerance for clocks. Raises `UpstreamFailed`."""
    if not_before is not None and now + SKEW < not_before:
        raise _refused(f"{what} is valid from {wire_instant(not_before)}, and the time on this server is {wire_instant(now)}. {_CLOCKS}")
    if not_on_or_after is not None and now - SKEW >= not_on_or_after:
        raise _refused(f"{what} ended at {wire_instant(not_on_or_after)}, and the time on this server is {wire_instant(now)}. {_CLOCKS}")


_CLOCKS = "Compare the clocks of both servers. The message may also be old."


def _confirmed_until(assertion: Assertion, expected: Expected) -> datetime:
    """Return the latest time at which a valid bearer confirmation expires.

    If no confirmation is valid, raise the error of the first confirmation.
    """
    bearers = [one for one in assertion.confirmations if one.method == BEARER]
    if not bearers:
        raise _refused("The assertion has no SubjectConfirmation of the method bearer.")
    ends: list[datetime] = []
    refusals: list[UpstreamFailed] = []
    for confirmation in bearers:
        try:
            ends.append(_checked_confirmation(confirmation, expected))
        except UpstreamFailed as refused:
            refusals.append(refused)
    if not ends:
        raise refusals[0]
    # If the use were forgotten before the last confirmation expires, the assertion could be used again.
    return max(ends)


def _checked_confirmation(confirmation: Confirmation, expected: Expected) -> datetime:
    """Check a confirmation (SAML Profiles 2.0, 4.1.4.2); return its expiry.

    The profile forbids NotBefore; it is allowed here, because common providers send it.
    """
    if confirmation.recipient not in expected.recipients:
        named = f"'{_short(confirmation.recipient)}'" if confirmation.recipient else "missing"
        raise _refused(
            f"The Recipient is {named} and must be '{_one_of(expected.recipients)}'."
            " Enter that as assertion consumer service (ACS) at the provider."
        )
    if confirmation.not_on_or_after is None:
        raise _refused("The SubjectConfirmationData has no NotOnOrAfter.")
    check_times("The SubjectConfirmation", confirmation.not_before, confirmation.not_on_or_after, expected.now)
    if confirmation.not_on_or_after > expected.now + LONGEST_LIFE:
        raise _refused("The SubjectConfirmation is valid for more than a day. Shorten the lifetime of assertions at the provider.")
    _check_request(confirmation.in_response_to, expected, where="The assertion")
    return confirmation.not_on_or_after


def _check_request(named: str, expected: Expected, *, where: str) -> None:
    if expected.request_id is None:
        # SAML Profiles 2.0, 4.1.5: an unsolicited answer contains no id of a request.
        if named:
            raise _refused(f"{where} answers the request '{_short(named)}', which did not begin in this browser.")
    elif named != expected.request_id:
        problem = f"answers the request '{_short(named)}'" if named else "names no request (InResponseTo)"
        raise _refused(f"{where} {problem}; this login began with '{expected.request_id}'.")


def recipients_of(callback: str, connection: str, more: Iterable[str] = ()) -> frozenset[str]:
    """Return the addresses of the assertion consumer service that a provider may use: with and without the query parameter `connection`."""
    return frozenset((acs_address(callback, connection), callback, *more))


def acs_address(callback: str, connection: str) -> str:
    return f"{callback}?connection={connection}"


def with_organization(recipients: frozenset[str], address: str, connection: str) -> frozenset[str]:
    """Add `address` to the recipients if it is one of them with `organization` added to its query (contract, 2.6).

    `address` is the address to which the browser posted.
    """
    parts = urlsplit(address)
    names: Mapping[str, str] = dict(parse_qsl(parts.query))
    plain = f"{parts.scheme}://{parts.netloc}{parts.path}"
    # An address with the name of another connection is not added: an answer to that address is for the other connection.
    is_ours = plain in recipients and set(names) <= {"connection", "organization"} and names.get("connection") in (None, connection)
    return recipients | {address} if is_ours else recipients


def _one_of(addresses: frozenset[str]) -> str:
    """Return the address to show: the longest address, which contains the name of the connection."""
    return max(addresses, key=lambda address: (len(address), address), default="")


def _short(text: str) -> str:
    shown = "".join(character for character in text if character.isprintable())
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
