"""Configures the attack protection of a tenant with the unmodified Python client. Runs in a separate Python environment."""

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


def leaks(client: Any, seen: dict[str, Any]) -> None:
    detection = client.attack_protection.breached_password_detection
    seen["detection"] = detection.get().enabled
    changed = detection.update(
        enabled=True,
        shields=["block", "user_notification"],
        admin_notification_frequency=["daily"],
        method="standard",
        stage={"pre-user-registration": {"shields": ["block"]}, "pre-change-password": {"shields": ["admin_notification"]}},
    )
    read = detection.get()
    stage = read.stage
    seen["detected"] = [read.shields, stage.pre_user_registration.shields, stage.pre_change_password.shields, read.dict() == changed.dict()]
    seen["enhanced"] = refusal(detection.update, method="enhanced")


def addresses(client: Any, seen: dict[str, Any]) -> None:
    throttling = client.attack_protection.suspicious_ip_throttling
    before = throttling.get()
    seen["throttling"] = [before.enabled, before.stage.pre_login.max_attempts, before.stage.pre_custom_token_exchange.rate]
    read = throttling.update(allowlist=["192.0.2.0/24"], stage={"pre-login": {"max_attempts": 7, "rate": 1000}})
    seen["throttled"] = [read.allowlist, read.stage.pre_login.max_attempts, read.stage.pre_user_registration.max_attempts]
    seen["odd"] = refusal(throttling.update, allowlist=["nowhere"])
    seen["not blocked"] = refusal(client.anomaly.blocks.check_ip, id="203.0.113.7")
    seen["lifted"] = client.anomaly.blocks.unblock_ip(id="203.0.113.7")
    seen["no address"] = refusal(client.anomaly.blocks.check_ip, id="nowhere")


def blocked(client: Any, seen: dict[str, Any], address: str) -> None:
    seen["blocked"] = client.anomaly.blocks.check_ip(id=address)
    client.anomaly.blocks.unblock_ip(id=address)
    seen["lifted now"] = refusal(client.anomaly.blocks.check_ip, id=address)


def main() -> None:
    base, token, address = sys.argv[1:]
    client = Auth0(base_url=base, token=token)
    seen: dict[str, Any] = {}
    leaks(client, seen)
    addresses(client, seen)
    blocked(client, seen, address)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main()
