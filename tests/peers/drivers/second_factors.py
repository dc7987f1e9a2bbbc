"""Uses second factors with the unmodified Python client: factors, policies, and the methods of a user.

Runs in a separate Python environment.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.management.core.api_error import ApiError  # type: ignore[import-untyped]  # as above


def refusal(call: Any, *arguments: Any, **named: Any) -> list[Any]:
    """Return the status and the code of the error that a call raises, or an empty list if it succeeds."""
    try:
        call(*arguments, **named)
    except ApiError as error:
        return [error.status_code, error.body.get("errorCode")]
    return []


def tenant(client: Any, seen: dict[str, Any]) -> None:
    seen["no factor yet"] = refusal(client.guardian.policies.set, request=["all-applications"])
    seen["on"] = client.guardian.factors.set("otp", enabled=True).enabled
    seen["other vendor"] = refusal(client.guardian.factors.set, "duo", enabled=True)
    seen["factors"] = sorted(factor.name for factor in client.guardian.factors.list() if factor.enabled)
    seen["policies"] = client.guardian.policies.set(request=["all-applications"])
    seen["read"] = client.guardian.policies.list()


def methods(client: Any, seen: dict[str, Any], user: str) -> None:
    users, own = client.users, client.users.authentication_methods
    made = own.create(user, type="totp", name="App")
    phone = own.create(user, type="phone", phone_number="+491712345678")
    seen["made"] = [made.type, len(made.totp_secret), phone.phone_number]
    seen["listed"] = sorted(method.type for method in own.list(user))
    seen["one"] = [own.get(user, phone.id).phone_number, own.get(user, made.id).name]
    seen["renamed"] = own.update(user, made.id, name="Other").name
    seen["enrollments"] = sorted(enrollment.auth_method for enrollment in users.enrollments.get(user))
    enrollment = client.guardian.enrollments.get(phone.id.partition("|")[2])
    seen["enrollment"] = [enrollment.status, enrollment.phone_number]
    seen["recovery"] = len(users.regenerate_recovery_code(user).recovery_code) > 20
    seen["set"] = [method.id == phone.id for method in own.set(user, request=[{"type": "phone", "phone_number": "+491712345678"}])]
    seen["provider"] = refusal(users.multifactor.delete_provider, user, "google-authenticator")
    users.multifactor.invalidate_remember_browser(user)
    own.delete(user, phone.id)
    seen["gone"] = refusal(own.get, user, phone.id)
    tickets(client, seen, user)
    own.create(user, type="email", email="ada@corp.example")
    users.authenticators.delete_all(user)
    own.delete_all(user)
    seen["left"] = [method.type for method in own.list(user)]


def tickets(client: Any, seen: dict[str, Any], user: str) -> None:
    create = client.guardian.enrollments.create_ticket
    made = create(user_id=user, factor="otp", allow_multiple_enrollments=True, send_mail=True, email="ada@corp.example", email_locale="de")
    seen["ticket"] = [len(made.ticket_id) > 10, made.ticket_id in made.ticket_url, "/u/factor-setup?ticket=" in made.ticket_url]
    seen["no such user"] = refusal(create, user_id="auth0|0123456789abcdef01234567")
    seen["factor that is off"] = refusal(create, user_id=user, factor="phone")


def main() -> None:
    base_url, token, user = sys.argv[1:]
    client = Auth0(base_url=base_url, token=token)
    seen: dict[str, Any] = {}
    tenant(client, seen)
    methods(client, seen, user)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main()
