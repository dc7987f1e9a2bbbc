"""Calls the endpoints of clients and connections, also with the parameter `fields`, with the unmodified Python library. Runs in a
separate Python environment."""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.management.errors import BadRequestError  # type: ignore[import-untyped]

ONCE = {"max_retries": 0}
MEMBERS: dict[str, Any] = {
    "addons": {},
    "mobile": {"ios": {"team_id": "9JA89QQLNQ", "app_bundle_identifier": "com.example.shop"}},
    "native_social_login": {"apple": {"enabled": False}},
    "token_exchange": {"allow_any_profile_of_type": []},
    "sso": False,
    "form_template": "<form>",
    "cross_origin_loc": "https://shop.example.test/verify",
    "encryption_key": {"cert": "-----BEGIN CERTIFICATE-----", "subject": "/CN=shop"},
    "client_aliases": ["urn:shop"],
    "token_quota": {"client_credentials": {"enforce": False, "per_day": 5}},
}


def code_of(call: Any, *args: Any, **kwargs: Any) -> str:
    """Return the error code of a call that is refused with status 400, or an empty text if it succeeds."""
    try:
        call(*args, **kwargs, request_options=ONCE)
    except BadRequestError as raised:
        body = raised.body
        return str(body["errorCode"] if isinstance(body, dict) else body.error_code)
    return ""


def clients(client: Any, seen: dict[str, Any]) -> None:
    made = client.clients.create(name="Shop", **MEMBERS)
    read = client.clients.get(made.client_id)
    seen["members"] = [
        read.mobile.ios.team_id,
        read.native_social_login.apple.enabled,
        read.sso,
        read.token_quota.client_credentials.per_day,
    ]
    seen["defaults"] = [read.sso_disabled, read.custom_login_page_on, read.refresh_token.rotation_type, read.refresh_token.token_lifetime]
    seen["addon"] = code_of(client.clients.update, made.client_id, addons={"salesforce": {}})
    organization = client.organizations.create(name="acme")
    default = {"organization_id": organization.id, "flows": ["client_credentials"]}
    seen["default organization"] = client.clients.update(made.client_id, default_organization=default).default_organization.flows
    unknown = {"organization_id": "org_0123456789abcdef", "flows": ["client_credentials"]}
    seen["unknown organization"] = code_of(client.clients.update, made.client_id, default_organization=unknown)
    seen["fields"] = [[found.name, found.app_type] for found in client.clients.list(fields="name", include_fields=True)]
    seen["unknown field"] = code_of(lambda **options: list(client.clients.list(fields="nonsense", **options)))


def credentials(client: Any, seen: dict[str, Any], pem: str) -> None:
    robot = client.clients.create(name="Robot")
    key = client.clients.credentials.create(robot.client_id, credential_type="public_key", pem=pem)
    client.clients.update(robot.client_id, client_authentication_methods={"private_key_jwt": {"credentials": [{"id": key.id}]}})
    seen["used credential"] = code_of(client.clients.credentials.delete, robot.client_id, key.id)
    client.clients.update(robot.client_id, client_authentication_methods=None, token_endpoint_auth_method="client_secret_post")
    client.clients.credentials.delete(robot.client_id, key.id)
    seen["credentials"] = len(client.clients.credentials.list(robot.client_id))


def connections(client: Any, seen: dict[str, Any], issuer: str) -> None:
    made = client.connections.create(name="corp", strategy="oidc", options={"client_id": "abc", "issuer": issuer})
    seen["enabled clients"] = made.enabled_clients
    options = made.options if isinstance(made.options, dict) else made.options.model_dump()
    seen["discovered"] = options["token_endpoint"].removeprefix(issuer)
    seen["google"] = client.connections.create(name="google", strategy="google-apps", options={"domain": "example.com"}).strategy
    refused = {"attributes": {"email": {}}, "requires_username": True}
    seen["attributes"] = code_of(client.connections.create, name="a", strategy="auth0", options=refused)


def main() -> None:
    base_url, token, issuer, pem = sys.argv[1:]
    client = Auth0(base_url=base_url, token=token)
    seen: dict[str, Any] = {}
    clients(client, seen)
    credentials(client, seen, pem)
    connections(client, seen, issuer)
    print(json.dumps(seen))  # noqa: T201 (the test reads this output)


main()
