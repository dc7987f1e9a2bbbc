"""Uses custom domains, device credentials and other small endpoints with the unmodified Python client.

Runs in a separate Python environment.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.management.core.api_error import ApiError  # type: ignore[import-untyped]  # as above


def say(told: Any) -> None:
    """Send one line of JSON to the test."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def refusal(call: Any, *arguments: Any, **named: Any) -> list[Any]:
    """Return the status and the code of the error that a call raises, or an empty list if it succeeds."""
    try:
        call(*arguments, **named)
    except ApiError as error:
        return [error.status_code, error.body.get("errorCode")]
    return []


def custom_domains(client: Any, seen: dict[str, Any], host: str) -> None:
    seen["default"] = client.custom_domains.get_default().domain
    made = client.custom_domains.create(domain=host, type="self_managed_certs", domain_metadata={"team": "web"})
    seen["created"] = [made.status, made.primary, made.verification.methods[0].name]
    seen["unproven"] = client.custom_domains.verify(made.custom_domain_id).verification.status
    # Wait for a line from the test, which first publishes the DNS record.
    say([made.verification.methods[0].domain, made.verification.methods[0].record])
    sys.stdin.readline()
    seen["proven"] = client.custom_domains.verify(made.custom_domain_id).status
    seen["read"] = client.custom_domains.get(made.custom_domain_id).domain_metadata
    seen["changed"] = client.custom_domains.update(made.custom_domain_id, domain_metadata={"team": None, "owner": "ops"}).domain_metadata
    seen["listed"] = [domain.status for domain in client.custom_domains.list(sort="domain:1")]
    seen["chosen"] = client.custom_domains.set_default(domain=host).is_default
    seen["tested"] = client.custom_domains.test(made.custom_domain_id).success
    seen["in use"] = refusal(client.custom_domains.delete, made.custom_domain_id, request_options={"max_retries": 0})
    client.custom_domains.set_default(domain=seen["default"])
    client.custom_domains.delete(made.custom_domain_id)
    seen["unknown"] = refusal(client.custom_domains.get, made.custom_domain_id)


def credentials(client: Any, seen: dict[str, Any], ada: str) -> None:
    listed = list(client.device_credentials.list(user_id=ada, type="refresh_token"))
    seen["devices"] = [[device.type, device.device_name, device.user_id == ada] for device in listed]
    client.device_credentials.delete(listed[0].id)
    seen["devices left"] = len(list(client.device_credentials.list(user_id=ada)))
    key = {"device_name": "Phone", "type": "public_key", "value": "AAAA", "device_id": "1"}
    seen["device key"] = refusal(client.device_credentials.create_public_key, **key)


def reads(client: Any, seen: dict[str, Any], ada: str, people: str) -> None:
    seen["enrollments"] = client.users.enrollments.get(ada)
    seen["status"] = client.connections.check_status(people)
    seen["search"] = refusal(lambda: list(client.clients.search(q="name:x")))
    seen["agents"] = refusal(lambda: list(client.agents.list()))
    client.connections.users.delete_by_email(people, email="ada@example.test")
    seen["deleted"] = refusal(client.users.get, ada)


def main() -> None:
    base_url, token, host, people, ada = sys.argv[1:]
    client = Auth0(base_url=base_url, token=token)
    seen: dict[str, Any] = {}
    custom_domains(client, seen, host)
    credentials(client, seen, ada)
    reads(client, seen, ada, people)
    say(seen)


if __name__ == "__main__":
    main()
