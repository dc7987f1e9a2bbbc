"""Uses roles, groups, organizations, clients and grants with the unmodified Python client. Runs in a separate Python environment."""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked

API = "https://api.example.test/orders"
PERMISSION = {"resource_server_identifier": API, "permission_name": "read:orders"}


def roles(client: Any, seen: dict[str, Any], ada: str) -> str:
    client.resource_servers.create(identifier=API, name="Orders", scopes=[{"value": "read:orders", "description": "Read"}])
    seen["resource server"] = [client.resource_servers.get(API).name, len(list(client.resource_servers.list()))]
    editor = client.roles.create(name="editor", description="Edits").id
    client.roles.update(editor, name="writer")
    seen["role"] = [client.roles.get(editor).name, [role.name for role in client.roles.list(per_page=1)]]
    client.roles.permissions.add(editor, permissions=[PERMISSION])
    client.users.permissions.create(ada, permissions=[PERMISSION])
    seen["permissions"] = [[found.permission_name for found in client.roles.permissions.list(editor)],
                           [found.description for found in client.users.permissions.list(ada)]]  # fmt: skip
    client.users.roles.assign(ada, roles=[editor])
    client.roles.users.assign(editor, users=[ada])
    seen["role users"] = [
        [user.email for user in client.roles.users.list(editor)],
        [role.id == editor for role in client.users.roles.list(ada)],
    ]
    seen["effective"] = [role.sources for role in client.users.effective_roles.list(ada)]
    seen["effective permissions"] = [
        found.sources for found in client.users.effective_permissions.list(ada, resource_server_identifier=API)
    ]
    return str(editor)


def organizations(client: Any, seen: dict[str, Any], ada: str, people: str, role: str, group: str) -> None:
    acme = client.organizations.create(name="acme", display_name="Acme", enabled_connections=[{"connection_id": people}])
    seen["connections at creation"] = [row.connection.name for row in acme.enabled_connections]
    client.organizations.update(acme.id, metadata={"tier": "gold"})
    seen["organization"] = [client.organizations.get_by_name("acme").id == acme.id, client.organizations.get(acme.id).metadata]
    seen["organizations"] = [found.name for found in client.organizations.list(take=1)]
    one = client.organizations.enabled_connections.update(acme.id, people, assign_membership_on_login=True)
    seen["enabled connections"] = [
        one.assign_membership_on_login,
        [row.connection_id == people for row in client.organizations.enabled_connections.list(acme.id)],
    ]
    seen["connections"] = [row.is_enabled for row in client.organizations.connections.list(acme.id)]
    client.organizations.members.create(acme.id, members=[ada])
    client.organizations.members.roles.assign(acme.id, ada, roles=[role])
    seen["members"] = [member.email for member in client.organizations.members.list(acme.id)]
    seen["member roles"] = [found.name for found in client.organizations.members.roles.list(acme.id, ada)]
    client.organizations.groups.roles.create(acme.id, group, roles=[role])
    seen["group roles"] = [found.name for found in client.organizations.groups.roles.list(acme.id, group)]
    seen["groups"] = [found.name for found in client.organizations.groups.list(acme.id)]
    seen["sources of a member role"] = [sorted(found.sources) for found in client.organizations.members.effective_roles.list(acme.id, ada)]
    sources = client.organizations.members.effective_roles.sources.groups.list(acme.id, ada, role_id=role)
    seen["member source groups"] = [found.name for found in sources]
    seen["role members"] = [found.user_id == ada for found in client.organizations.roles.members.list(acme.id, role)]
    seen["user organizations"] = [found.name for found in client.users.organizations.list(ada)]
    client.organizations.groups.roles.delete(acme.id, group, roles=[role])
    client.organizations.members.roles.delete(acme.id, ada, roles=[role])
    client.organizations.members.delete(acme.id, members=[ada])
    client.organizations.enabled_connections.delete(acme.id, people)
    client.organizations.delete(acme.id)


def groups(client: Any, seen: dict[str, Any], ada: str, role: str, group: str) -> None:
    seen["group"] = [client.groups.get(group).name, [found.name for found in client.groups.list(take=1)]]
    client.groups.roles.create(group, roles=[role])
    client.roles.groups.create(role, groups=[group])
    seen["roles of the group"] = [found.id == role for found in client.groups.roles.list(group)]
    seen["groups of the role"] = [found.id == group for found in client.roles.groups.get(role)]
    seen["group members"] = [[found.member_type, found.id == ada] for found in client.groups.members.get(group)]
    seen["user groups"] = [found.name for found in client.users.groups.get(ada)]
    seen["source groups"] = [found.name for found in client.users.effective_roles.sources.groups.list(ada, role_id=role)]


def clients(client: Any, seen: dict[str, Any], people: str) -> None:
    shop = client.clients.create(name="Shop", app_type="non_interactive", client_metadata={"a": "b"})
    seen["client"] = [len(shop.client_secret), client.clients.update(shop.client_id, name="Store").name]
    rotated = client.clients.rotate_secret(shop.client_id)
    seen["rotated"] = rotated.client_secret != shop.client_secret
    seen["clients"] = [found.name for found in client.clients.list(per_page=1)]
    client.connections.clients.update(people, request=[{"client_id": shop.client_id, "status": True}])
    seen["enabled clients"] = [found.client_id == shop.client_id for found in client.connections.clients.get(people)]
    seen["client connections"] = [found.name for found in client.clients.connections.get(shop.client_id)]
    grant = client.client_grants.create(client_id=shop.client_id, audience=API, scope=["read:orders"])
    client.client_grants.update(grant.id, scope=[])
    seen["grants"] = [[found.audience == API, found.scope] for found in client.client_grants.list(take=1)]
    for _ in range(2):
        client.client_grants.delete(grant.id)
        client.clients.delete(shop.client_id)
        client.resource_servers.delete(API)


def main(base_url: str, token: str, group: str) -> None:
    client = Auth0(base_url=base_url, token=token)
    seen: dict[str, Any] = {}
    people = next(found.id for found in client.connections.list() if found.name == "people")
    ada = next(iter(client.users.list())).user_id
    role = roles(client, seen, ada)
    groups(client, seen, ada, role, group)
    organizations(client, seen, ada, people, role, group)
    clients(client, seen, people)
    client.roles.delete(role)
    client.groups.delete(group)
    seen["left"] = [len(list(client.roles.list())), len(list(client.groups.list())), len(list(client.organizations.list()))]
    print(json.dumps(seen))  # noqa: T201 (the test reads this output)


if __name__ == "__main__":
    main(*sys.argv[1:])
