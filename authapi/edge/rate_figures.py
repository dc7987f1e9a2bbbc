"""All rate limits in one table: per tenant and endpoint, per IP address, per browser, and per user.

`RATE_LIMIT_PER_SECOND` and `RATE_LIMIT_BURST` are the limit of each tenant at each endpoint. Requests without a credential to an open
endpoint count against other limits (`authapi.edge.open_rates`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from django.conf import settings

from authapi.edge.buckets import Bucket


@dataclass(frozen=True)
class Figure:
    """A limit of `burst` requests per window. The window lasts `burst / per_second` seconds, rounded, but at least one second."""

    per_second: float
    burst: int

    @cached_property
    def seconds(self) -> int:
        """The length of the window in seconds."""
        return max(1, round(self.burst / self.per_second))


# One limit for all anonymous callers of a tenant together, in a window of two seconds. It applies to callers whose IP address has reached
# its own limit (design, 7.1).
ANONYMOUS = "anonymous"
_ANONYMOUS_SECONDS = 2
# The shared limit of all browsers in which one user has logged in. It can be low, because one user requests only a few pages at a time.
_OF_BROWSERS = Figure(10, 200)
# Busy endpoints without authentication. Every other endpoint counts a request against the tenant
# only after the client is authenticated.
OPEN_ENDPOINTS = frozenset(
    {
        "jwks", "discovery", "signup", "change_password", "passwordless_start", "passwordless_verify", "otp_challenge",
        "passkey_register", "passkey_challenge",
        "login_challenge", "sso_data", "country", "device_code", "registration",
    }
)  # fmt: skip

# Contract 9.4: logins of one identifier from one IP address, including successful logins: 20 at once, then 10 per minute.
LOGINS = Bucket("login", 20, 6.0)
# Contract 9.3: password resets of one account from one IP address: 10 at once, then one per minute.
RESETS = Bucket("change_password", 10, 60.0)
# Contract 9.3: delegations of one user from one IP address: 10 at once, then 10 per minute.
DELEGATIONS = Bucket("delegation", 10, 6.0)
# Password resets from one IP address over all accounts: 100 at once, then one every 12 seconds. Each request creates a job and a line in
# the sign-in log.
RESETS_OF_ADDRESS = Bucket("change_password_address", 100, 12.0)
# Mails that verify the email address of one account with a pending invitation: 3 at once, then one every five minutes.
GUEST_MAILS = Bucket("guest_mail", 3, 300.0)

# Acts of one user on the account page (docs/adr/0118): password changes: 10 at once, then one per minute; mails to a new email address:
# 3 at once, then one every five minutes; data exports: 5 at once, then one every ten minutes.
OWN_PASSWORDS = Bucket("own_password", 10, 60.0)
ADDRESS_CHANGES = Bucket("address_change", 3, 300.0)
DATA_EXPORTS = Bucket("data_export", 5, 600.0)

# Login codes and links (docs/adr/0101). Contract 9.3: 50 per hour from one IP address, over all
# email addresses and phone numbers.
STARTS_OF_PLACE = Bucket("passwordless_start", 50, 72.0)
# Codes to one recipient: from one IP address 5 at once, then one every 30 minutes; from all IP addresses 10 at once, then one every 20
# minutes. One IP address therefore never uses up the allowance of the user.
CODES_FROM_PLACE = Bucket("passwordless_place", 5, 1800.0)
CODES = Bucket("passwordless_address", 10, 1200.0)
# Codes requested from a browser in which the user has logged in before: 5 at once, then one every 5 minutes.
CODES_KNOWN = Bucket("passwordless_known", 5, 300.0)
# One limit for all codes of one application, and one for all codes of one tenant. Both limit the cost of a flood to many recipients.
CODES_OF_CLIENT = Bucket("passwordless_client", 600, 1.0)
CODES_OF_TENANT = Bucket("passwordless_tenant", 1200, 0.5)
# Wrong guesses at the codes of one recipient: from one IP address 5 at once, then one every 20 minutes; from all IP addresses 20 at once,
# then one every 15 minutes. With two valid codes of six digits, a year of guessing succeeds with a probability of 7 %.
CODE_GUESSES_FROM_PLACE = Bucket("code_guess_place", 5, 1200.0)
CODE_GUESSES = Bucket("code_guess", 20, 900.0)
CODE_GUESSES_KNOWN = Bucket("code_guess_known", 10, 600.0)

# Second factors (docs/adr/0115), contract 9.14. Two limits have the same numbers: one for the codes that are sent to one user, and one for
# the codes that are sent to one email address or phone number. Each is 10 at once, then one every six minutes.
FACTOR_CODES_TO_USER = Bucket("factor_code_user", 10, 360.0)
FACTOR_CODES_TO_ADDRESS = Bucket("factor_code_address", 10, 360.0)
FACTOR_CODES_OF_TENANT = Bucket("factor_code_tenant", 1200, 0.5)
# Failed second factors of one user: from one IP address 5 at once, then one every 15 minutes; from all IP addresses 10 at once, then one
# every 20 minutes. An app has three valid codes at a time. A year of guessing finds one of them with a probability of 8 %, and the
# attacker also needs the password.
FACTOR_GUESSES_FROM_PLACE = Bucket("factor_guess_place", 5, 900.0)
FACTOR_GUESSES = Bucket("factor_guess", 10, 1200.0)
FACTOR_GUESSES_KNOWN = Bucket("factor_guess_known", 10, 600.0)

# Passkey requests of applications (docs/adr/0121) are limited because each request stores a row for five minutes. Public clients from
# one IP address: 60 at once, then one every 20 seconds. Two further limits apply: one per client and one per tenant.
PASSKEYS_OF_PLACE = Bucket("passkey_place", 60, 20.0)
PASSKEYS_OF_CLIENT = Bucket("passkey_client", 600, 1.0)
PASSKEYS_OF_TENANT = Bucket("passkey_tenant", 1200, 0.5)

# Device codes (docs/adr/0108). Public clients from one IP address: 60 at once, then one every 20 seconds. Two further limits apply: one per
# client and one per tenant.
DEVICE_CODES_OF_PLACE = Bucket("device_code_place", 60, 20.0)
DEVICE_CODES_OF_CLIENT = Bucket("device_code_client", 600, 1.0)
DEVICE_CODES_OF_TENANT = Bucket("device_code_tenant", 1200, 0.5)
# Wrong codes at `/activate`: from one IP address 20 at once, then one per minute; in one browser 10 at once, then one every two minutes;
# from all browsers without a login together: 600 at once, then one per second. With a thousand waiting devices, a day
# of guessing finds a code of 34 bits with a probability of 0.4 %.
USER_CODES_OF_PLACE = Bucket("user_code_place", 20, 60.0)
USER_CODES_OF_BROWSER = Bucket("user_code_browser", 10, 120.0)
USER_CODES_OF_STRANGERS = Bucket("user_code_strangers", 600, 1.0)

# Requests that a user approves in another browser (docs/adr/0116): from one client to one user 5 at once, then one every two minutes;
# from all clients to one user 10 at once, then one per minute. Two further limits apply: one per client and one per tenant. Each request
# sends a mail or calls a webhook.
APPROVALS_OF_CLIENT_AND_USER = Bucket("approval_client_user", 5, 120.0)
APPROVALS_OF_USER = Bucket("approval_user", 10, 60.0)
APPROVALS_OF_CLIENT = Bucket("approval_client", 600, 1.0)
APPROVALS_OF_TENANT = Bucket("approval_tenant", 1200, 0.5)
# Approval requests of one client for users who do not exist or who may not use the client: 60 at once, then one every 5 seconds.
UNKNOWN_USERS_OF_CLIENT = Bucket("approval_unknown", 60, 5.0)

# Clients that register themselves (docs/adr/0109): from one IP address 10 at once, then one every six minutes; at one tenant 100 at once,
# then one per minute.
REGISTRATIONS_OF_PLACE = Bucket("registration_place", 10, 360.0)
REGISTRATIONS_OF_TENANT = Bucket("registration_tenant", 100, 60.0)

# Log lines about failed operations of one client: 60 at once, then one every 5 seconds. Further failures are answered but not logged.
FAILED_OPERATIONS = Bucket("failed_operation", 60, 5.0)

# Refused messages of providers, which the service stores for the administrators of a tenant: 60 at once, then one every 5 seconds. The
# endpoint is public, so an attacker can send any number. Further messages are logged without their text.
REFUSED_MESSAGES = Bucket("refused_message", 60, 5.0)

# Log lines about refused token exchanges of one client: 60 at once, then one every 5 seconds.
REFUSED_EXCHANGES = Bucket("refused_exchange", 60, 5.0)
# Log lines about refused logout requests from the provider of one connection: 20 at once, then one every 30 seconds.
REFUSED_REVOCATIONS = Bucket("refused_revocation", 20, 30.0)

# KiB of pending requests to `/authorize`, which are kept for an hour: 16 MiB per IP address (a login takes about one KiB), and half a MiB
# for all browsers in which one user has completed a login. Both limits refill in an hour.
PARKED_BY_ADDRESS = Bucket("parked", 16_384, 3600 / 16_384)
PARKED_BY_BROWSER = Bucket("parked_browser", 512, 3600 / 512)
# If a proxy hides the IP addresses of callers, their requests to a tenant share this limit: the allowance of 16 IP addresses.
PARKED_BY_HIDDEN = Bucket("parked_hidden", 262_144, 3600 / 262_144)


def figure_of(endpoint: str) -> Figure:
    """Return the limit of a tenant at an endpoint."""
    if endpoint == ANONYMOUS:
        per_second: int = settings.ANONYMOUS_RATE_PER_SECOND
        return _figure(per_second, per_second * _ANONYMOUS_SECONDS)
    return _figure(settings.RATE_LIMIT_PER_SECOND, settings.RATE_LIMIT_BURST)


# This function is called for every request, so its result is cached.
@lru_cache(maxsize=64)
def _figure(per_second: float, burst: int) -> Figure:
    return Figure(per_second, burst)


def debt_figure() -> Figure:
    """Return the limit for refused requests of one IP address per minute."""
    return _figure(settings.FAILED_AUTHENTICATIONS_PER_MINUTE / 60, settings.FAILED_AUTHENTICATIONS_PER_MINUTE)


def visit_figure() -> Figure:
    """Return the limit of one IP address for requests without authentication: pages and open endpoints."""
    return _figure(settings.ADDRESS_RATE_PER_SECOND, settings.ADDRESS_RATE_BURST)


def browser_figure() -> Figure:
    """Return the limit for requests without authentication from the browsers in which one user has logged in."""
    return _OF_BROWSERS
