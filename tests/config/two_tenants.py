"""Two tenants with one row of each kind, and every operation of the OpenAPI document as a call that succeeds on rows of its tenant."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from django.db import connection as database
from django.utils import timezone

from authapi.api.neutral import body_name
from authapi.api.neutral_table import SETTINGS
from authapi.looks.theme import default_theme
from authapi.models import ClientCredential
from authapi.services.client_credentials import NewCredential, create_credential
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from config.api import openapi_document
from identity.exports.exports import start_export
from identity.models import EnrolledFactor, Job, Tenant, User
from identity.services import groups, memberships
from identity.services.domains import add_domain, verify_domain
from provisioning.engine.streams import synchronization_target
from provisioning.synchronization.plan import Plan
from tests.authapi.assertions import public_pem
from tests.factories.actions import make_deployed_action
from tests.factories.identity import make_connection, make_user
from tests.factories.models.authapi import ApiResourceFactory, BrandingThemeFactory, InvitationFactory, TokenExchangeProfileFactory
from tests.factories.models.identity import EnrolledFactorFactory, JobFactory, TenantFactory
from tests.factories.organizations import make_group, make_organization, make_role
from tests.factories.sign_ins import sign_in_rows
from tests.management import Answer, Management, segment

# An unknown id in the format of each kind.
UNKNOWN = {
    "user": "database|ffffffffffffffffffffffff",
    "connection": "con_ffffffffffffffff",
    "role": "rol_ffffffffffffffff",
    "group": "grp_ffffffffffffffffffffff",
    "organization": "org_ffffffffffffffff",
    "organization name": "nobody",
    "client": "f" * 32,
    "application": "f" * 32,
    "resource server": "f" * 24,
    "grant": "cgr_ffffffffffffffff",
    "stream": "est_ffffffffffffffffffffff",
    "event": "evt_ffffffffffffffffffffff",
    "action": "act_ffffffffffffffffffffff",
    "audience": "https://nobody.example.test",
    "job": "job_ffffffffffffffff",
    "synchronization": "job_ffffffffffffffff",
    "version": "ffffffff-ffff-4fff-8fff-ffffffffffff",
    "execution": "ffffffff-ffff-4fff-8fff-ffffffffffff",
    "session": "ses_ffffffffffffffffffffff",
    "refresh token": "rt_ffffffffffffffffffffff",
    "user grant": "999999999999999",
    "log line": "log_ffffffffffffffffffffff",
    "signing key": "f" * 21,
    "credential": "cred_ffffffffffffffffffffff",
    "theme": "f" * 32,
    "exchange profile": "tep_ffffffffffffffff",
    "invitation": "uinv_ffffffffffffffff",
    "custom domain": "cd_ffffffffffffffff",
    "canonical host": "nobody.example.test",
    "method": "totp|dev_ffffffffffffffff",
    "enrollment": "dev_ffffffffffffffff",
}
# The kind of row that a path parameter names. If the parameter is `id`, the preceding part of the path names the kind.
_BY_NAME = {
    "version_id": "version",
    "job_id": "synchronization",
    "user_id": "user",
    "connection_id": "connection",
    "group_id": "group",
    "role_id": "role",
    "grant_id": "grant",
    "event_id": "event",
    "kid": "signing key",
    "credential_id": "credential",
    "invitation_id": "invitation",
    "method_id": "method",
}
_BY_COLLECTION = {
    "users": "user",
    "connections": "connection",
    "roles": "role",
    "groups": "group",
    "organizations": "organization",
    "name": "organization name",
    "clients": "client",
    "resource-servers": "resource server",
    "client-grants": "grant",
    "event-streams": "stream",
    "jobs": "job",
    "actions": "action",
    "executions": "execution",
    "sessions": "session",
    "refresh-tokens": "refresh token",
    "grants": "user grant",
    "logs": "log line",
    "user-blocks": "user",
    "custom-domains": "custom domain",
    "themes": "theme",
    "device-credentials": "refresh token",
    "token-exchange-profiles": "exchange profile",
    "enrollments": "enrollment",
}
# Values that are the same for every tenant.
FIXED = {
    "trigger_id": "event-stream",
    "prompt": "login",
    "language": "en",
    "template_name": "verify_email",
    "ip": "203.0.113.7",
    "provider": "google-authenticator",
    "factor": "otp",
}
# On this path, `user_id` is not the key of a separate row. The service searches for this value among the identities of the user `id`.
_WITHIN_A_USER = "users/{id}/identities/{provider}/{user_id}"
_TABLES = "SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant_id' AND table_schema = 'public' ORDER BY 1"
# Tables that change without a call, because another thread numbers recorded events a moment later.
_NUMBERING = frozenset({"events_head", "events_logentry", "events_outbox"})
# The table of the administrative lines, which also describe refused writes of the clients of a tenant.
LOG = "authapi_administrativeline"
_DIGEST = """SELECT '{0}', md5(string_agg(row::text, '|' ORDER BY row::text)) FROM "{0}" row WHERE tenant_id = %s"""

Ids = dict[str, str]


@dataclass(frozen=True)
class Call:
    """One operation: its method, its path with parameters in braces, and the component of its body."""

    method: str
    path: str
    body: str | None

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Return the name and kind of each parameter that is the id of a row."""
        if self.path == _WITHIN_A_USER:
            return [("id", "user")]
        return [
            (name, _BY_NAME.get(name) or _BY_COLLECTION[before])
            for before, name in re.findall(r"([a-z_-]+)/\{(\w+)\}", self.path)
            if name in _BY_NAME or before in _BY_COLLECTION
        ]

    def send(self, api: Management, ids: Ids, *, replaced: dict[str, str], body_ids: Ids) -> Answer:
        """Call the operation with the path parameters from `ids` or `replaced`, and with the body from `body_ids`."""
        values = {name: ids[kind] for name, kind in self.parameters} | replaced
        path = re.sub(r"\{(\w+)\}", lambda found: segment(values.get(found[1]) or FIXED.get(found[1], "nobody")), self.path)
        return api.call(self.method, path, body=None if self.body is None else bodies(body_ids)[self.body])


def calls() -> Iterator[Call]:
    """Yield every operation of the document except the subscription, whose response stays open."""
    for path, operations in orjson.loads(openapi_document())["paths"].items():
        for method, operation in operations.items():
            if path == "/events":
                continue
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            name = content.get("items", content)["$ref"].rpartition("/")[2] if content else None
            yield Call(method.upper(), path.removeprefix("/"), name)


def bodies(ids: Ids) -> dict[str, Any]:
    """Return a body of each kind that refers to these rows."""
    permission = {"resource_server_identifier": ids["audience"], "permission_name": "read:orders"}
    fresh = secrets.token_hex(4)
    stream = {
        "subscriptions": [{"event_type": "user.created"}],
        "destination": {"type": "action", "configuration": {"action_id": ids["action"]}},
    }
    return {
        "AccessToRevoke": {"session_id": ids["session"]},
        "ActionToChange": {"name": "Changed"},
        "ActionToCreate": {
            "name": fresh,
            "supported_triggers": [{"id": "event-stream", "version": "v1"}],
            "template": "scim-user-provisioning",
        },
        "ActionToTest": {"payload": {"test": "mapping", "user_id": ids["user"]}},
        "BindingsToChange": {"bindings": []},
        "BrandingToChange": {"colors": {"primary": "#112233"}},
        "CustomTexts": {"login": {"title": "Welcome"}},
        "BruteForceToChange": {"max_attempts": 5},
        "CanaryToSend": {},
        "ClientStatus": [{"client_id": ids["client"], "status": True}],
        "ClientToChange": {"name": "Changed"},
        "ClientToCreate": {"name": fresh},
        "ConnectionToChange": {"display_name": "Changed"},
        "ConnectionToCreate": {"name": fresh, "strategy": "email"},
        "CredentialToChange": {"expires_at": None},
        "CredentialToCreate": {"credential_type": "cert_subject_dn", "subject_dn": f"CN={fresh}"},
        "CustomDomainToChange": {"domain_metadata": {"note": "Changed"}},
        "CustomDomainToCreate": {"domain": f"{fresh}.example.test", "type": "self_managed_certs"},
        "DefaultDomainToSet": {"domain": ids["canonical host"]},
        "DeletionThresholdToSet": {"threshold": 5},
        "EmailToVerify": {"user_id": ids["user"], "client_id": ids["client"], "organization_id": ids["organization"]},
        "EnabledConnectionToAdd": {"connection_id": ids["connection"]},
        "EnabledConnectionToChange": {"show_as_button": False},
        "EventStreamToChange": {"name": "Changed"},
        "EventStreamToCreate": stream,
        "ExchangeProfileToChange": {"name": "Changed"},
        "ExchangeProfileToCreate": {
            "name": fresh,
            "subject_token_type": f"urn:acme:{fresh}",
            "type": "custom_authentication",
            "subject_token": {"issuer": "https://issuer.example.com/", "audience": "a", "jwks_uri": "https://issuer.example.com/keys"},
            "user": {"connection_id": ids["connection"]},
        },
        "FactorSwitch": {"enabled": True},
        "GuardianPolicy": [],
        "GrantToChange": {"scope": []},
        "GrantToCreate": {"client_id": ids["client"], "audience": ids["audience"]},
        "GrantToName": {"grant_id": ids["grant"]},
        "GroupMembersToChange": {"members": [ids["user"]]},
        "GroupToChange": {"name": "Changed"},
        "GroupToCreate": {"name": fresh, "type": "connection", "connection_id": ids["connection"]},
        "GroupsToChange": {"groups": [ids["group"]]},
        "IdentityToLink": {"provider": "database", "user_id": ids["user"]},
        "InvitationToCreate": {
            "inviter": {"name": "Ada"},
            "invitee": {"email": f"{fresh}@example.com"},
            "client_id": ids["application"],
            "roles": [ids["role"]],
            "send_invitation_email": False,
        },
        "KeyToRegister": {
            "device_name": "Phone",
            "device_id": fresh,
            "type": "public_key",
            "value": public_pem("device"),
            "client_id": ids["client"],
            "user_id": ids["user"],
        },
        "LeakRulesToChange": {"enabled": True},
        "MailToVerify": {"user_id": ids["user"]},
        "MethodToChange": {"name": "Changed"},
        "MethodToCreate": {"type": "email", "email": f"{fresh}@example.com"},
        "MethodToSet": [{"type": "email", "email": f"{fresh}@example.com"}],
        "OrganizationConnectionToAdd": {"connection_id": ids["connection"]},
        "OrganizationConnectionToChange": {"show_as_button": False},
        "OrganizationMembersToChange": {"members": [ids["user"]]},
        "OrganizationPolicy": {"policy": "always"},
        "OrganizationToChange": {"display_name": "Changed"},
        "OrganizationToCreate": {"name": fresh, "enabled_connections": [{"connection_id": ids["connection"]}]},
        "PasswordToChange": {"user_id": ids["user"], "client_id": ids["client"], "organization_id": ids["organization"]},
        "PermissionsToChange": {"permissions": [permission]},
        "ProviderToChange": {"enabled": False},
        "ProviderToCreate": {
            "name": "smtp",
            "default_from_address": "a@example.com",
            "credentials": {"smtp_host": "mail.example.com", "smtp_port": 587},
        },
        "RedeliveriesToStart": {"statuses": ["failed"]},
        "RefreshTokenToChange": {"refresh_token_metadata": {"note": "Changed"}},
        "RefreshTokensToRevoke": {"user_id": ids["user"]},
        "ResourceServerToChange": {"name": "Changed"},
        "ResourceServerToCreate": {"identifier": fresh},
        "RoleToChange": {"name": "Changed"},
        "RoleToCreate": {"name": fresh, "type": "organization", "owner_id": ids["organization"]},
        "RolesToChange": {"roles": [ids["role"]]},
        "SecondFactorsToChange": {"remembered_days": 7},
        "SessionToChange": {"session_metadata": {"note": "Changed"}},
        "SetupTicket": {"user_id": ids["user"], "factor": "otp", "allow_multiple_enrollments": True},
        "SuspicionToChange": {"enabled": False},
        "SynchronizationToStart": {"mode": "dry_run"},
        "TemplateToChange": {"subject": "Changed"},
        "TemplateToSet": {"template": "verify_email", "subject": "Changed"},
        "ThemeToChange": {"page_background": default_theme()["page_background"]},
        "ThemeToCreate": default_theme(),
        "TenantSettingsToChange": {"default_directory": ids["connection name"]},
        "TestEventToSend": {"event_type": "user.created"},
        "UserToChange": {"given_name": "Changed"},
        "UserToCreate": {"connection": ids["connection name"], "email": "new@example.test", "password": "Correct-horse-7"},
        "UsersToChange": {"users": [ids["user"]]},
        "UsersToExport": {"connection_id": ids["connection"]},
        "VersionToDeploy": {"update_draft": True},
        **{body_name(row): row.value for row in SETTINGS if row.value},
    }


def names_rows(body: str) -> bool:
    """Report whether a body of this kind refers to rows."""
    one, other = bodies(dict.fromkeys([*UNKNOWN, "connection name"], "one")), bodies(dict.fromkeys([*UNKNOWN, "connection name"], "other"))
    return b"other" in orjson.dumps(other[body]) and one[body] != other[body]


def make_other_tenant() -> Tenant:
    """Create a second tenant."""
    tenant_id = f"o-{secrets.token_hex(6)}"
    return TenantFactory.create(id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test")


def ids_of(tenant: Tenant, name: str) -> Ids:
    """Create one related row of each kind, and return their ids. All unique values contain `name`."""
    people = make_connection(tenant_id=tenant.pk, name=name)
    user = make_user(connection=people)
    role, group, organization = make_role(tenant, name), make_group(tenant, name), make_organization(tenant, name)
    client, _ = create_client(tenant_id=tenant.pk, name=name)
    audience = f"https://{name}.example.test"
    server = ApiResourceFactory.create(tenant_id=tenant.pk, identifier=audience, scopes=[{"value": "read:orders"}])
    grant = create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=server)
    inside = {"tenant_id": tenant.pk, "organization_id": organization.pk}
    memberships.add_connection(**inside, connection_id=people.pk)
    memberships.add_members(**inside, user_ids=[user.user_id])
    memberships.assign_member_roles(**inside, user_id=user.user_id, role_ids=[role.pk])
    memberships.assign_organization_group_roles(**inside, group_id=group.pk, role_ids=[role.pk])
    groups.add_group_members(tenant_id=tenant.pk, group_id=group.pk, user_ids=[user.user_id])
    groups.assign_group_roles(tenant_id=tenant.pk, group_id=group.pk, role_ids=[role.pk])
    action = make_deployed_action(tenant)
    subject = NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, subject_dn=f"CN={name}")
    ids = {
        "user": user.user_id,
        "connection": people.pk,
        "connection name": name,
        "role": role.pk,
        "group": group.pk,
        "organization": organization.pk,
        "organization name": name,
        "client": client.client_id,
        "resource server": server.pk,
        "job": start_export(tenant_id=tenant.pk).pk,
        "grant": grant.pk,
        "action": str(action.pk),
        "version": str(action.versions.get().pk),
        "execution": str(action.trials.create(kind="connection", actor="nobody", outcome="passed").pk),
        "audience": audience,
        "custom domain": _verified_domain(tenant, name),
        "canonical host": f"{tenant.pk}.example.test",
        "invitation": InvitationFactory.create(tenant_id=tenant.pk, organization=organization, client=client).pk,
        "theme": BrandingThemeFactory.create(tenant_id=tenant.pk).pk,
        "exchange profile": TokenExchangeProfileFactory.create(tenant_id=tenant.pk, connection=people, name=name[:50]).pk,
        "application": _application_of_members(tenant, name),
        **_factor_ids(user),
        "credential": create_credential(tenant_id=tenant.pk, client_id=client.client_id, new=subject).pk,
    }
    ids |= sign_in_rows(user, client)
    api = Management(tenant)
    stream = api.post("event-streams", bodies(ids)["EventStreamToCreate"]).json["id"]
    event = api.post(f"event-streams/{stream}/test", bodies(ids)["TestEventToSend"]).json["id"]
    return ids | {"stream": stream, "event": event, "synchronization": _finished_synchronization(tenant, stream)}


def _factor_ids(user: User) -> Ids:
    """Return the ids by which the paths identify a second factor of the user."""
    factor = EnrolledFactorFactory.create(user=user, kind=EnrolledFactor.Kind.TOTP)
    return {"method": f"{factor.kind}|{factor.device}", "enrollment": factor.device}


def _application_of_members(tenant: Tenant, name: str) -> str:
    """Return an application that members of an organization log in to."""
    settings = {"organization_usage": "allow", "initiate_login_uri": f"https://{name}.example.com/login"}
    grants = ["authorization_code"]
    client, _ = create_client(tenant_id=tenant.pk, name=f"{name} of members", app_type="regular_web", grant_types=grants, settings=settings)
    return client.client_id


def _verified_domain(tenant: Tenant, name: str) -> str:
    domain = add_domain(tenant_id=tenant.pk, host=f"{name}.{tenant.pk}.example.test")
    return verify_domain(tenant_id=tenant.pk, domain_id=domain.pk).pk


def _finished_synchronization(tenant: Tenant, stream_id: str) -> str:
    """Return a dry run that is finished. While a dry run is not finished, the stream accepts no other dry run."""
    plan = Plan(is_dry_run=True).as_document()
    target = synchronization_target(stream_id)
    done = {
        "target": target,
        "status": Job.Status.COMPLETED,
        "parameters": {"stream_id": stream_id, "plan": plan},
        "finished_at": timezone.now(),
    }
    return str(JobFactory.create(tenant_id=tenant.pk, type=Job.Type.STREAM_SYNCHRONIZATION, **done).pk)


def rows_of(tenant: Tenant) -> dict[str, list[Any]]:
    """Return every row of the tenant in every table."""
    found = {}
    with database.cursor() as cursor:
        for table in _tables():
            cursor.execute(f'SELECT row::text FROM "{table}" row WHERE tenant_id = %s ORDER BY 1', [tenant.pk])  # noqa: S608
            found[table] = cursor.fetchall()
    return found


def rows_but_log_of(tenant: Tenant) -> dict[str, list[Any]]:
    """Return every row of the tenant except its administrative lines."""
    return {table: rows for table, rows in rows_of(tenant).items() if table != LOG}


def digests_of(tenant: Tenant) -> dict[str, str]:
    """Return a digest of the rows of each table, from one statement. The tables of numbering and of administrative lines are left out."""
    tables = [table for table in _tables() if table not in _NUMBERING | {LOG}]
    with database.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(_DIGEST.format(table) for table in tables), [tenant.pk] * len(tables))
        return dict(cursor.fetchall())


@cache
def _tables() -> list[str]:
    with database.cursor() as cursor:
        cursor.execute(_TABLES)
        return [row[0] for row in cursor.fetchall()]
