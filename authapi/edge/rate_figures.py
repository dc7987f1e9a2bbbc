"""Every figure of a rate, in one table: per tenant and endpoint, per address, per browser, and per person.

`RATE_LIMIT_PER_SECOND` and `RATE_LIMIT_BURST` are the figures of every endpoint that the table does not name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from django.conf import settings

from authapi.edge.buckets import Bucket


@dataclass(frozen=True)
class Figure:
    """`burst` requests in one window, which lasts as long as they take at `per_second`."""

    per_second: float
    burst: int

    @cached_property
    def seconds(self) -> int:
        """The length of the window in seconds."""
        return max(1, round(self.burst / self.per_second))


# What a tenant's anonymous callers spend together once an address has used up its own (design, 7.1): windows of two seconds.
ANONYMOUS = "anonymous"
_ANONYMOUS_SECONDS = 2
# A person behind a browser asks for a few pages at a time; an address may be a whole company.
_OF_BROWSERS = Figure(10, 200)
# Hot endpoints that ask for no proof. What is not named here charges the tenant once its client is proven.
OPEN_ENDPOINTS = frozenset(
    {
        "jwks", "discovery", "signup", "change_password", "passwordless_start", "passwordless_verify", "otp_challenge",
        "passkey_register", "passkey_challenge",
        "login_challenge", "sso_data", "country", "device_code", "registration",
    }
)  # fmt: skip

# Contract 9.4: one identifier from one address, successes too: 20 at once, then 10 a minute.
LOGINS = Bucket("login", 20, 6.0)
# Contract 9.3: one address and one account: 10 at once, then one a minute.
RESETS = Bucket("change_password", 10, 60.0)
# Contract 9.3: delegations of one user from one address: 10 at once, then 10 a minute.
DELEGATIONS = Bucket("delegation", 10, 6.0)
# One address over all accounts, as each request leaves a job and a line in the log: 100 at once, then one in 12 seconds.
RESETS_OF_ADDRESS = Bucket("change_password_address", 100, 12.0)
# Mails that verify the address of one account that an invitation waits for: 3 at once, then one in five minutes.
GUEST_MAILS = Bucket("guest_mail", 3, 300.0)

# What one person does at the account page (docs/adr/0118): passwords to change 10 at once, then one a minute; mails to another
# address 3 at once, then one in five minutes; downloads of the own data 5 at once, then one in ten minutes.
OWN_PASSWORDS = Bucket("own_password", 10, 60.0)
ADDRESS_CHANGES = Bucket("address_change", 3, 300.0)
DATA_EXPORTS = Bucket("data_export", 5, 600.0)

# Codes and links that log people in (docs/adr/0101). Contract 9.3: 50 an hour from one place, over all addresses.
STARTS_OF_PLACE = Bucket("passwordless_start", 50, 72.0)
# To one address: from one place 5 at once, then one in 30 minutes; from everywhere 10 at once, then one in 20 minutes, so that one
# place never uses up what the person has.
CODES_FROM_PLACE = Bucket("passwordless_place", 5, 1800.0)
CODES = Bucket("passwordless_address", 10, 1200.0)
# From a browser that has logged the account in before: 5 at once, then one in 5 minutes.
CODES_KNOWN = Bucket("passwordless_known", 5, 300.0)
# All codes of one application, and of one tenant: what a flood over many addresses may cost.
CODES_OF_CLIENT = Bucket("passwordless_client", 600, 1.0)
CODES_OF_TENANT = Bucket("passwordless_tenant", 1200, 0.5)
# Wrong guesses at the codes of one address: from one place 5 at once, then one in 20 minutes; from everywhere 20 at once, then one in
# 15 minutes. With two codes of six digits that count, a year of guessing finds one with a chance of 7 %.
CODE_GUESSES_FROM_PLACE = Bucket("code_guess_place", 5, 1200.0)
CODE_GUESSES = Bucket("code_guess", 20, 900.0)
CODE_GUESSES_KNOWN = Bucket("code_guess_known", 10, 600.0)

# Second factors (docs/adr/0115). Codes that are sent, contract 9.14: to one user, and to one address, 10 at once, then one in six minutes.
FACTOR_CODES_TO_USER = Bucket("factor_code_user", 10, 360.0)
FACTOR_CODES_TO_ADDRESS = Bucket("factor_code_address", 10, 360.0)
FACTOR_CODES_OF_TENANT = Bucket("factor_code_tenant", 1200, 0.5)
# Wrong proofs of one user: from one place 5 at once, then one in 15 minutes; from everywhere 10 at once, then one in 20 minutes. Of the
# three codes of an app that count at a time, a year of guessing finds one with a chance of 8 %, and only with the password.
FACTOR_GUESSES_FROM_PLACE = Bucket("factor_guess_place", 5, 900.0)
FACTOR_GUESSES = Bucket("factor_guess", 10, 1200.0)
FACTOR_GUESSES_KNOWN = Bucket("factor_guess_known", 10, 600.0)

# Passkeys of applications (docs/adr/0121), as each leaves a row for five minutes: of public clients from one address 60 at once, then one
# in 20 seconds; of one client; of one tenant.
PASSKEYS_OF_PLACE = Bucket("passkey_place", 60, 20.0)
PASSKEYS_OF_CLIENT = Bucket("passkey_client", 600, 1.0)
PASSKEYS_OF_TENANT = Bucket("passkey_tenant", 1200, 0.5)

# Codes of devices (docs/adr/0108): of public clients from one address 60 at once, then one in 20 seconds; of one client; of one tenant.
DEVICE_CODES_OF_PLACE = Bucket("device_code_place", 60, 20.0)
DEVICE_CODES_OF_CLIENT = Bucket("device_code_client", 600, 1.0)
DEVICE_CODES_OF_TENANT = Bucket("device_code_tenant", 1200, 0.5)
# Wrong codes at `/activate`: from one address 20 at once, then one a minute; in one browser 10 at once, then one in two minutes; of
# all browsers together in which no user has logged in, 600 at once, then one a second. With a thousand devices that wait, a day of
# guessing hits one of 34 bits with a chance of 0.4 %.
USER_CODES_OF_PLACE = Bucket("user_code_place", 20, 60.0)
USER_CODES_OF_BROWSER = Bucket("user_code_browser", 10, 120.0)
USER_CODES_OF_STRANGERS = Bucket("user_code_strangers", 600, 1.0)

# Requests that a user approves elsewhere (docs/adr/0116): of one client to one user 5 at once, then one in two minutes; of all clients to
# one user 10 at once, then one a minute; of one client; of one tenant. Each is a mail or a call to the tenant's server.
APPROVALS_OF_CLIENT_AND_USER = Bucket("approval_client_user", 5, 120.0)
APPROVALS_OF_USER = Bucket("approval_user", 10, 60.0)
APPROVALS_OF_CLIENT = Bucket("approval_client", 600, 1.0)
APPROVALS_OF_TENANT = Bucket("approval_tenant", 1200, 0.5)
# Requests of one client for users that are not there, or not for it: 60 at once, then one in 5 seconds.
UNKNOWN_USERS_OF_CLIENT = Bucket("approval_unknown", 60, 5.0)

# Clients that register themselves (docs/adr/0109): from one address 10 at once, then one in six minutes; at one tenant 100 at once,
# then one a minute.
REGISTRATIONS_OF_PLACE = Bucket("registration_place", 10, 360.0)
REGISTRATIONS_OF_TENANT = Bucket("registration_tenant", 100, 60.0)

# Lines of the log about failed operations of one client: 60 at once, then one in 5 seconds. Further ones are answered and not noted.
FAILED_OPERATIONS = Bucket("failed_operation", 60, 5.0)

# Messages of providers that were refused and are kept for administrators, of one tenant: anyone can post one. 60 at once, then one in
# 5 seconds; further ones have their line in the log and no text.
REFUSED_MESSAGES = Bucket("refused_message", 60, 5.0)

# Lines of the log about tokens of one client that were not exchanged: 60 at once, then one in 5 seconds.
REFUSED_EXCHANGES = Bucket("refused_exchange", 60, 5.0)
# Lines of the log about refused demands of the provider of one connection to log a user out: 20 at once, then one in 30 seconds.
REFUSED_REVOCATIONS = Bucket("refused_revocation", 20, 30.0)

# KiB of waiting requests to `/authorize`, which are kept for an hour: 16 MiB of an address, of which a login takes about one KiB,
# and half a MiB of the browsers of an account that has completed one. They are refilled in an hour.
PARKED_BY_ADDRESS = Bucket("parked", 16_384, 3600 / 16_384)
PARKED_BY_BROWSER = Bucket("parked_browser", 512, 3600 / 512)
# All requests to a tenant together whose address a proxy hides: as much as 16 addresses.
PARKED_BY_HIDDEN = Bucket("parked_hidden", 262_144, 3600 / 262_144)


def figure_of(endpoint: str) -> Figure:
    """Return what a tenant has at an endpoint."""
    if endpoint == ANONYMOUS:
        per_second: int = settings.ANONYMOUS_RATE_PER_SECOND
        return _figure(per_second, per_second * _ANONYMOUS_SECONDS)
    return _figure(settings.RATE_LIMIT_PER_SECOND, settings.RATE_LIMIT_BURST)


# Asked for with every request, and made once.
@lru_cache(maxsize=64)
def _figure(per_second: float, burst: int) -> Figure:
    return Figure(per_second, burst)


def debt_figure() -> Figure:
    """Return how many refused requests one address has in a minute."""
    return _figure(settings.FAILED_AUTHENTICATIONS_PER_MINUTE / 60, settings.FAILED_AUTHENTICATIONS_PER_MINUTE)


def visit_figure() -> Figure:
    """Return how many requests without any proof one address has: for pages, and for open endpoints."""
    return _figure(settings.ADDRESS_RATE_PER_SECOND, settings.ADDRESS_RATE_BURST)


def browser_figure() -> Figure:
    """Return how many such requests the browsers of one account have in which it has completed a login."""
    return _OF_BROWSERS
