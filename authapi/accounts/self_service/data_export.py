"""Exports all data that a tenant stores about a user, as a JSON document without secrets and of limited size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Model, QuerySet
from django.utils import timezone

from authapi.accounts.self_service.own_act import OwnAct, own_act
from authapi.accounts.user_lookup import names_of
from authapi.edge.rate_figures import DATA_EXPORTS
from authapi.edge.throttling import Rate
from authapi.models import AccountTicket, Consent, LoginFailures, RefreshToken, RememberedBrowser, Session, SignIn, UserPermission
from identity.documents.user import user_document
from identity.models import EmailTicket, EnrolledFactor, GroupMember, OrganizationMember, User, UserRole

# The maximum number of rows in one list: `MOST_LINES` for the log, `MOST_ROWS` for every other list. A list contains the newest rows; the
# member `incomplete` contains the names of the lists whose older rows are left out.
MOST_ROWS = 1000
MOST_LINES = 5000

_Rows = QuerySet[Any]
_Shown = Callable[[Any], dict[str, Any]]


@own_act("Downloaded own data")
def export_data(own: OwnAct, user: User) -> dict[str, Any] | Rate:
    """Return the document of the user. After too many requests, return the exceeded limit instead."""
    if not DATA_EXPORTS.takes(user.tenant_id, user.user_id):
        return Rate.of_empty(DATA_EXPORTS)
    own.record("Downloaded own data")
    return document_of(user)


def document_of(user: User) -> dict[str, Any]:
    """Return the data that the tenant stores about the user, without passwords, tokens and keys. Times are ISO 8601 in UTC."""
    found: dict[str, Any] = {
        "exported_at": _moment(timezone.now()),
        "tenant": user.tenant_id,
        "profile": user_document(user),
        "has_password": hasattr(user, "password_credential"),
    }
    incomplete = []
    for name, (rows, shown, most) in _lists(user).items():
        some = list(rows[: most + 1])
        if len(some) > most:
            incomplete.append(name)
        found[name] = [shown(row) for row in some[:most]]
    return {**found, "incomplete": incomplete}


def _lists(user: User) -> Mapping[str, tuple[_Rows, _Shown, int]]:
    def own(model: type[Model], *related: str) -> _Rows:
        rows: _Rows = model.objects.of(user.tenant_id).filter(user=user).order_by("-pk")  # type: ignore[attr-defined]
        return rows.select_related(*related) if related else rows

    lines = SignIn.objects.of(user.tenant_id).filter(user_id=user.user_id).order_by("-created_at", "-id")
    connections = {user.connection_id, *user.linked_identities.values_list("connection_id", flat=True)}
    failures = LoginFailures.objects.of(user.tenant_id).filter(connection__in=connections, identifier__in=names_of(user))
    return {
        "sessions": (own(Session, "connection"), _session, MOST_ROWS),
        "allowed_applications": (own(Consent, "client"), _consent, MOST_ROWS),
        "refresh_tokens": (own(RefreshToken, "application"), _refresh_token, MOST_ROWS),
        "factors": (own(EnrolledFactor), _factor, MOST_ROWS),
        "remembered_browsers": (own(RememberedBrowser), _browser, MOST_ROWS),
        "organizations": (own(OrganizationMember, "organization"), _member, MOST_ROWS),
        "groups": (own(GroupMember, "group"), _group, MOST_ROWS),
        "roles": (own(UserRole, "role"), _role, MOST_ROWS),
        "permissions": (own(UserPermission, "permission__api_resource"), _permission, MOST_ROWS),
        "mailed_links": (own(AccountTicket), _ticket, MOST_ROWS),
        "verifications": (own(EmailTicket), _verification, MOST_ROWS),
        "failed_logins": (failures.order_by("-pk"), _failures, MOST_ROWS),
        "log": (lines, _line, MOST_LINES),
    }


def _session(row: Session) -> dict[str, Any]:
    return {
        "id": row.pk,
        "connection": row.connection.name,
        "created_at": _moment(row.created_at),
        "authenticated_at": _moment(row.authenticated_at),
        "last_interacted_at": _moment(row.last_interacted_at),
        "expires_at": _moment(row.expires_at),
        "methods": row.methods,
        "initial_ip": row.initial_ip,
        "initial_user_agent": row.initial_user_agent,
        "last_ip": row.last_ip,
        "last_user_agent": row.last_user_agent,
        "last_country": row.last_country or None,
        "metadata": row.metadata,
    }


def _consent(row: Consent) -> dict[str, Any]:
    return {
        "client_id": row.client.client_id,
        "client_name": row.client.name,
        "audience": row.audience,
        "scopes": row.scopes,
        "details": row.asked,
        "created_at": _moment(row.created_at),
        "updated_at": _moment(row.updated_at),
    }


def _refresh_token(row: RefreshToken) -> dict[str, Any]:
    return {
        "client_id": row.application.client_id,
        "audience": row.audience,
        "scope": row.scope,
        "created_at": _moment(row.created),
        "last_exchanged_at": _moment(row.last_exchanged_at),
        "revoked_at": _moment(row.revoked),
        "expires_at": _moment(row.expires_at),
        "initial_ip": row.initial_ip,
        "initial_user_agent": row.initial_user_agent,
        "last_ip": row.last_ip,
        "last_user_agent": row.last_user_agent,
        "metadata": row.metadata,
    }


def _factor(row: EnrolledFactor) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "name": row.name,
        "address": row.address or None,
        "is_confirmed": row.is_confirmed,
        "created_at": _moment(row.created_at),
        "last_used_at": _moment(row.last_used_at),
    }


def _browser(row: RememberedBrowser) -> dict[str, Any]:
    return {
        "ip": row.ip,
        "user_agent": row.user_agent,
        "last_used_at": _moment(row.last_used_at),
        "expires_at": _moment(row.expires_at),
    }


def _member(row: OrganizationMember) -> dict[str, Any]:
    return {"id": row.organization.pk, "name": row.organization.name}


def _group(row: GroupMember) -> dict[str, Any]:
    return {"id": row.group.pk, "name": row.group.name}


def _role(row: UserRole) -> dict[str, Any]:
    return {"id": row.role.pk, "name": row.role.name}


def _permission(row: UserPermission) -> dict[str, Any]:
    return {"permission": str(row.permission), "created_at": _moment(row.created_at)}


def _ticket(row: AccountTicket) -> dict[str, Any]:
    return {
        "purpose": row.purpose,
        "email": row.parameters.get("email") or None,
        "created_at": _moment(row.created_at),
        "expires_at": _moment(row.expires_at),
        "used_at": _moment(row.used_at),
    }


def _verification(row: EmailTicket) -> dict[str, Any]:
    return {
        "email": row.email,
        "former_email": row.former_email,
        "created_at": _moment(row.created_at),
        "expires_at": _moment(row.expires_at),
        "used_at": _moment(row.used_at),
    }


def _failures(row: LoginFailures) -> dict[str, Any]:
    return {
        "identifier": row.identifier,
        "ip": row.ip,
        "count": row.count,
        "last_failed_at": _moment(row.last_failed_at),
        "blocked_at": _moment(row.blocked_at),
    }


def _line(row: SignIn) -> dict[str, Any]:
    return {
        "type": row.type,
        "is_success": row.is_success,
        "description": row.description,
        "client_name": row.client_name,
        "connection": row.connection,
        "ip": row.ip,
        "user_agent": row.user_agent,
        "created_at": _moment(row.created_at),
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
