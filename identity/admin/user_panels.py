"""Panels below the form of a user: identities, organizations, groups and roles, with links to change them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from foundation.admin.panels import Cell, Panel
from identity.models import Group, LinkedIdentity, OrganizationMember, OrganizationMemberRole, User
from identity.services.effective_roles import effective_roles, groups_of

_SHOWN = 50
_WAYS = {"direct": "assigned to the user", "groups": "through a group"}


class UserPanels:
    """The panels of one site. A panel is left out for accounts that may not see its rows."""

    def __init__(self, site: admin.AdminSite) -> None:
        self._site = site

    def identities(self, request: HttpRequest, user: User) -> Panel:
        """Return the linked identities, each with a link to unlink it."""
        may_unlink = request.user.has_perm("identity.change_linkedidentity")
        found = LinkedIdentity.objects.of(user.tenant_id).filter(user=user).select_related("connection")[:_SHOWN]
        rows = [
            (
                Cell(str(linked), self._page("linkedidentity", linked.pk)),
                Cell(linked.connection.name),
                Cell(f"{linked.created_at:%Y-%m-%d %H:%M}"),
                Cell("Unlink", self._action("linkedidentity", linked.pk, "unlink")) if may_unlink else Cell(""),
            )
            for linked in found
        ]
        empty = "This user has one identity. To add another one, use “Link another user” above."
        return Panel("Linked identities", ("Identity", "Connection", "Linked at (UTC)", ""), rows, empty)

    def organizations(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("identity.view_organizationmember"):
            return None
        may_remove = request.user.has_perm("identity.delete_organizationmember")
        found = list(OrganizationMember.objects.of(user.tenant_id).filter(user=user).select_related("organization")[:_SHOWN])
        roles: dict[int, list[str]] = {}
        given = OrganizationMemberRole.objects.of(user.tenant_id).filter(member__in=found).select_related("role")
        for row in given:
            roles.setdefault(row.member_id, []).append(row.role.name)
        rows = [
            (
                Cell(member.organization.display_name or member.organization.name, self._page("organization", member.organization_id)),
                Cell(", ".join(roles.get(member.pk, ())) or "none"),
                Cell(f"{member.created_at:%Y-%m-%d %H:%M}"),
                Cell("Remove", self._page("organizationmember", member.pk, "delete")) if may_remove else Cell(""),
            )
            for member in found
        ]
        return self._panel("Organizations", ("Organization", "Roles in it", "Member since (UTC)", ""), rows, "organizationmember", user)

    def groups(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("identity.view_group"):
            return None
        direct = set(Group.objects.of(user.tenant_id).filter(groupmember_rows__user=user).values_list("pk", flat=True))
        found = Group.objects.of(user.tenant_id).filter(pk__in=groups_of(user)).order_by("name", "pk")[:_SHOWN]
        rows = [
            (
                Cell(group.name, self._page("group", group.pk)),
                Cell(group.get_type_display()),
                Cell("member" if group.pk in direct else "through a nested group"),
            )
            for group in found
        ]
        return self._panel("Groups", ("Group", "Of", "How"), rows, "groupmember", user)

    def roles(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("identity.view_role"):
            return None
        effective = effective_roles(user)
        rows = [
            (Cell(role.name, self._page("role", role.pk)), Cell(role.description), Cell(_ways(effective.sources_of(role.pk))))
            for role in effective.rows(user.tenant_id).order_by("name", "pk")[:_SHOWN]
        ]
        return self._panel("Roles in the whole tenant", ("Role", "Description", "How"), rows, "userrole", user)

    def _panel(self, title: str, columns: tuple[str, ...], rows: Sequence[Sequence[Cell]], model: str, user: User) -> Panel:
        more = f"{reverse(f'{self._site.name}:identity_{model}_changelist')}?{urlencode({'q': user.user_id})}"
        return Panel(title, columns, rows, "None.", more, "Show all, add or remove")

    def _page(self, model: str, key: int | str, page: str = "change") -> str:
        return reverse(f"{self._site.name}:identity_{model}_{page}", args=(quote(key),))

    def _action(self, model: str, key: int | str, action: str) -> str:
        return reverse(f"{self._site.name}:identity_{model}_action", args=(quote(key), action))


def _ways(sources: Iterable[str]) -> str:
    return " and ".join(_WAYS[source] for source in sources)
