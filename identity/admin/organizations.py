"""Admin pages of organizations, their connections, members and roles."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from foundation.admin.badges import badge
from foundation.admin.pair_fields import PairsField
from identity.admin.deletions import DeletedInPartsAdmin
from identity.admin.people.organization_panels import ADDITIONS, CONNECTIONS, MEMBERS, ROLES, OrganizationPanels
from identity.admin.relations import RelationAdmin
from identity.admin.service_form import ServiceForm
from identity.models import (
    Connection,
    Group,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    Role,
    User,
)
from identity.services import memberships, organizations

# The tab for invitations. Another app adds the table of invitations to this tab.
INVITATIONS = "Invitations"
_BRANDING = ("logo_url", "primary_color", "page_background_color")
_COLORS = {"primary_color": "primary", "page_background_color": "page_background"}
_METADATA_PAIRS = 25


def _color(label: str, use: str) -> forms.RegexField:
    return forms.RegexField(
        r"\A#[0-9a-fA-F]{3,8}\Z",
        required=False,
        label=label,
        help_text=f"{use}, such as #0059d6. Empty: the color of the tenant. Enter the main color and the background color, or neither.",
        error_messages={"invalid": "Enter # and 3 to 8 hexadecimal digits, such as #0059d6."},
        widget=forms.TextInput(attrs={"size": 9, "maxlength": 9, "spellcheck": "false"}),
    )


class OrganizationForm(ServiceForm):
    """The form of an organization. The form combines the fields of the branding into the value that the service stores."""

    logo_url = forms.CharField(
        required=False,
        max_length=2048,
        label="Logo",
        help_text="The https address of a picture for the login pages. Empty: the logo of the tenant.",
        widget=forms.TextInput(attrs={"size": 50, "placeholder": "https://", "spellcheck": "false"}),
    )
    primary_color = _color("Main color", "Color of buttons on the login pages")
    page_background_color = _color("Background color", "Color behind the box of the login pages")
    metadata = PairsField(
        most=_METADATA_PAIRS, label="Metadata", help_text="Values for your applications. At most 25 pairs. To remove a pair, empty its row."
    )

    class Meta:
        model = Organization
        fields = ()  # The admin class lists the fields, in `fieldsets`.
        help_texts = {
            "name": "Applications send this name in login requests. Lowercase letters, digits, _ and -, for example acme.",
            "display_name": "The name on the login pages. Empty: the name above.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        branding = self.instance.branding or {}
        colors = branding.get("colors") or {}
        self.initial["logo_url"] = branding.get("logo_url") or ""
        self.initial.update({name: colors.get(key, "") for name, key in _COLORS.items()})

    def clean_logo_url(self) -> str:
        logo: str = self.cleaned_data["logo_url"]
        if logo and not logo.startswith("https://"):
            raise ValidationError("Enter an address that starts with https://.")
        return logo

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        typed = {name: cleaned.get(name) for name in _COLORS if name not in self.errors}
        if len(typed) == len(_COLORS) and len([color for color in typed.values() if color]) == 1:
            missing = next(name for name, color in typed.items() if not color)
            self.add_error(missing, "Enter both colors, or leave both empty.")
        return cleaned

    @property
    def branding(self) -> dict[str, Any]:
        """Return the branding that the fields describe."""
        values = self.cleaned_data
        colors = {key: values[name] for name, key in _COLORS.items() if values.get(name)}
        return {**({"logo_url": values["logo_url"]} if values.get("logo_url") else {}), **({"colors": colors} if colors else {})}

    def changes(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the new values of the changed fields. If a field of the branding has changed, the result contains the whole `branding`."""
        found = super().changes(without=(*without, *_BRANDING))
        return {**found, "branding": self.branding} if set(_BRANDING) & set(self.changed_data) else found


class OrganizationAdmin(DeletedInPartsAdmin[Organization]):
    form = OrganizationForm
    list_display = ("name", "display_name", "id", "created_at", "tenant")
    list_select_related = ("tenant",)
    search_fields = ("name", "display_name", "=id")
    empty_text = "No organizations yet. Add one for each customer company."
    deletion_effect = (
        "The memberships, role assignments, groups and connections of the organization are removed first, with one event each. The roles "
        "of the organization are deleted, too. Users and connections themselves stay. This can take a while."
    )
    id_field = "id"
    object_actions = ADDITIONS
    primary_action = "add-member"

    def __init__(self, model: type[Organization], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        shown = OrganizationPanels(admin_site)
        self.tabs = {
            MEMBERS: [shown.members, shown.member_roles],
            INVITATIONS: [],
            CONNECTIONS: [shown.connections],
            ROLES: [shown.own_roles, shown.own_groups, shown.group_roles],
        }

    def get_fieldsets(self, request: HttpRequest, obj: Organization | None = None) -> Any:
        own = [(None, {"fields": ["name", "display_name"]}), ("Branding", {"fields": _BRANDING}), ("Metadata", {"fields": ["metadata"]})]
        kept = ("Set by the service", {"fields": ["created_at", "updated_at"], "classes": ["collapse"]})
        return own if obj is None else [*own, kept]

    def get_readonly_fields(self, request: HttpRequest, obj: Organization | None = None) -> Any:
        return () if obj is None else ("created_at", "updated_at")

    def heading_of(self, row: Organization) -> str:
        return row.display_name or row.name

    def badge_of(self, row: Organization) -> str:
        return super().badge_of(row) or badge("Active", "good")

    def create(self, request: HttpRequest, form: Any) -> Organization:
        values = {name: value for name, value in form.cleaned_data.items() if value and name not in _BRANDING}
        if form.branding:
            values["branding"] = form.branding
        return organizations.create_organization(tenant_id=self.tenant_for_new(request), **values)

    def change(self, request: HttpRequest, row: Organization, form: Any) -> None:
        if form.changes():
            organizations.update_organization(tenant_id=row.tenant_id, organization_id=row.pk, changes=form.changes())


# The label and the help text of each setting of a connection in an organization.
_CONNECTION_SETTINGS = {
    "assign_membership_on_login": (
        "Make users members at login",
        "Each user who logs in to the organization with the connection becomes a member. If off, only members can log in to the "
        "organization with the connection.",
    ),
    "show_as_button": ("Show as button", "Stored for applications. The login page does not use this setting."),
    "is_signup_enabled": (
        "Allow sign-ups",
        "Invited users can create an account, even if the connection allows no other sign-ups. Possible only for a database connection "
        "that makes users members at login.",
    ),
    "is_enabled": ("Enabled", "If off, users cannot log in to the organization with the connection."),
    "organization_connection_name": (
        "Name of the connection in the organization",
        "Stored for applications. The login page does not show this name.",
    ),
    "organization_access_level": ("Access level of the organization", "Stored for applications. Logins do not use the level."),
    "organization_member_access_level": ("Access level of members", "Stored for applications. Logins do not use the level."),
}


class OrganizationConnectionAdmin(RelationAdmin[OrganizationConnection]):
    """Connections of organizations. No other relation has settings that staff can change."""

    joined = ("organization", "connection")
    described = "connection {connection} of {organization}"
    list_filter = ("organization", "connection")
    list_select_related = ("organization", "connection", "tenant")
    search_fields = ("=organization__id", "=connection__id")
    search_help_text = "Id of an organization or of a connection."
    empty_text = "No connections of organizations yet. Add one so that members can log in to the organization."
    deletion_effect = (
        "Users can no longer log in to the organization with this connection. Subscribers receive organization.connection.removed."
    )

    def get_fieldsets(self, request: HttpRequest, obj: OrganizationConnection | None = None) -> Any:
        return [(None, {"fields": self.joined}), ("Settings", {"fields": memberships.CONNECTION_FLAGS})]

    def get_form(self, request: HttpRequest, obj: OrganizationConnection | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        labels = {name: label for name, (label, _) in _CONNECTION_SETTINGS.items()}
        help_texts = {name: text for name, (_, text) in _CONNECTION_SETTINGS.items() if text}
        return super().get_form(request, obj, change=change, labels=labels, help_texts=help_texts, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: OrganizationConnection | None = None) -> Any:
        return () if obj is None else self.joined

    def has_change_permission(self, request: HttpRequest, obj: OrganizationConnection | None = None) -> bool:
        # This relation has settings. Other relations can only be added and deleted.
        return super(RelationAdmin, self).has_change_permission(request, obj)

    def create(self, request: HttpRequest, form: Any) -> OrganizationConnection:
        organization: Organization = form.cleaned_data["organization"]
        connection: Connection = form.cleaned_data["connection"]
        flags = {name: form.cleaned_data[name] for name in memberships.CONNECTION_FLAGS}
        return memberships.add_connection(
            tenant_id=self.tenant_for_new(request), organization_id=organization.pk, connection_id=connection.pk, **flags
        )

    def change(self, request: HttpRequest, row: OrganizationConnection, form: Any) -> None:
        if form.changes():
            memberships.update_organization_connection(
                tenant_id=row.tenant_id, organization_id=row.organization_id, connection_id=row.connection_id, changes=form.changes()
            )


class OrganizationMemberAdmin(RelationAdmin[OrganizationMember]):
    joined = ("organization", "user")
    described = "membership of {user} in {organization}"
    list_filter = ("organization",)
    list_select_related = ("organization", "user", "tenant")
    search_fields = ("=user__user_id", "=organization__id")
    search_help_text = "Id of a user or of an organization."
    empty_text = "No members yet. Add one to make a user a member of an organization."
    hint = "The user can then log in to the organization, and can have roles in the organization."
    deletion_effect = "The user loses the roles in the organization first. Subscribers receive organization.member.deleted."

    def join(self, tenant_id: str, **chosen: Any) -> None:
        organization: Organization = chosen["organization"]
        user: User = chosen["user"]
        memberships.add_members(tenant_id=tenant_id, organization_id=organization.pk, user_ids=[user.user_id])


class OrganizationMemberRoleAdmin(RelationAdmin[OrganizationMemberRole]):
    joined = ("organization", "user", "role")
    described = "role {role} of {user} in {organization}"
    list_filter = ("organization", "role")
    list_select_related = ("organization", "user", "role", "tenant")
    search_fields = ("=user__user_id", "=organization__id", "=role__id")
    search_help_text = "Id of a user, an organization or a role."
    empty_text = "No roles of members yet. Add one to give a member of an organization a role."
    hint = "The user must be a member of the organization. The role applies in this organization only."
    deletion_effect = "The user loses the role in the organization. Subscribers receive organization.member.role.deleted."

    def join(self, tenant_id: str, **chosen: Any) -> None:
        organization: Organization = chosen["organization"]
        user: User = chosen["user"]
        role: Role = chosen["role"]
        memberships.assign_member_roles(tenant_id=tenant_id, organization_id=organization.pk, user_id=user.user_id, role_ids=[role.pk])


class OrganizationGroupRoleAdmin(RelationAdmin[OrganizationGroupRole]):
    joined = ("organization", "group", "role")
    described = "role {role} of {group} in {organization}"
    list_filter = ("organization", "role")
    list_select_related = ("organization", "group", "role", "tenant")
    search_fields = ("=group__id", "=organization__id", "=role__id")
    search_help_text = "Id of a group, an organization or a role."
    empty_text = "No roles of groups yet. Add one to give the members of a group a role in an organization."
    hint = "The members of the group get the role in this organization only."
    deletion_effect = "The members of the group lose the role in the organization. Subscribers receive organization.group.role.deleted."

    def join(self, tenant_id: str, **chosen: Any) -> None:
        organization: Organization = chosen["organization"]
        group: Group = chosen["group"]
        role: Role = chosen["role"]
        memberships.assign_organization_group_roles(
            tenant_id=tenant_id, organization_id=organization.pk, group_id=group.pk, role_ids=[role.pk]
        )
