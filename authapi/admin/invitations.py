"""Admin pages of invitations to organizations: they show the state, and create, resend, renew and revoke an invitation.

The page of an organization has the same acts on one of its tabs.

A link is shown once, in the response to the request that created it, and never stored in a session, message or log.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from authapi.invitations import offers
from authapi.invitations.links import application_address
from authapi.invitations.offers import MOST_LIFE_SECONDS, NewInvitation
from authapi.models import Client, Invitation
from authapi.tenant_settings import sign_in_settings
from foundation.admin.badges import Tone, badge
from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectAction
from identity.admin.organizations import INVITATIONS
from identity.admin.people.labels import label_of
from identity.admin.people.organization_panels import roles_for
from identity.admin.people.tables import Tables
from identity.admin.row_forms import RowField, RowForm
from identity.admin.scope import actor_of
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm
from identity.hosts import address_beside
from identity.languages import LANGUAGES
from identity.models import Organization, Role

INVITE = "invite"
_DAY = 86_400
_TONES: dict[str, Tone] = {
    Invitation.State.PENDING: "warn",
    Invitation.State.ACCEPTED: "good",
    Invitation.State.EXPIRED: "quiet",
    Invitation.State.REVOKED: "bad",
}
_SHOWN = 20
# The values of `organization_usage` of applications that allow logins to organizations.
_WITH_ORGANIZATIONS = ("allow", "require")


class InvitationForm(ServiceForm):
    given_roles: forms.ModelMultipleChoiceField[Role] = forms.ModelMultipleChoiceField(
        # `get_form` sets the choices of roles, because the tenant is known only there.
        queryset=None,
        required=False,
        label="Roles",
        help_text="Roles of the new member in the organization. A role of another organization is refused.",
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=MOST_LIFE_SECONDS // _DAY,
        initial=7,
        label="Days until the invitation expires",
        help_text="At most 30. You can send an expired invitation again.",
    )
    language = forms.ChoiceField(required=False, help_text="Language of the email.")
    is_mailed = forms.BooleanField(
        required=False,
        initial=True,
        label="Send the invitation by email",
        help_text="The link in the email verifies the email address. If you turn this off, the next page shows a link that you send "
        "yourself. That link does not verify the address.",
    )

    class Meta:
        model = Invitation
        fields = ("organization", "client", "connection", "email", "inviter_name")
        help_texts: ClassVar = {
            "client": "The application that the invitation opens. Its settings must contain a login address and must allow organizations.",
            "connection": "The connection with which the user must log in to accept. Empty: any connection of the organization.",
            "email": "Only a user with this email address can accept the invitation.",
            "inviter_name": "Shown to the user in the email and on the page that the link opens.",
        }


class InviteForm(RowForm):
    """The form on the page of an organization. Its fields have the same names as in the errors of the service, so that each
    error is shown at its field.

    This form always sends the invitation by email. So no page shows the link, and staff need no recent proof of their identity.
    """

    email = forms.EmailField(
        max_length=254,
        label="Email address",
        help_text="The service sends an email with a link to this address. Only a user with this address can accept.",
    )
    client_id = RowField(
        identifier="client_id",
        label="Application",
        help_text="The application that the invitation opens. It must allow logins to organizations.",
    )
    role = RowField(required=False, help_text="Role of the new member.")

    def fit(self, request: HttpRequest, row: Organization) -> None:
        super().fit(request, row)
        clients = Client.objects.of(row.tenant_id).filter(revoked_at=None, is_account_page=False)
        self.fields["client_id"].offer(clients.filter(settings__organization_usage__in=_WITH_ORGANIZATIONS))  # type: ignore[attr-defined]
        self.fields["role"].offer(roles_for(row))  # type: ignore[attr-defined]


def _is_offered(row: Invitation) -> bool:
    return row.accepted_at is None and row.revoked_at is None


def _named(row: Invitation) -> dict[str, str]:
    return {"tenant_id": row.tenant_id, "organization_id": row.organization_id, "invitation_id": row.pk}


def _resend(request: HttpRequest, row: Invitation, _values: dict[str, Any]) -> str:
    offers.resend_invitation(**_named(row), address=address_beside(request.get_host(), row.tenant_id))
    return f"Invitation sent again to {row.email}."


def _revoke(_request: HttpRequest, row: Invitation, _values: dict[str, Any]) -> str:
    offers.revoke_invitation(**_named(row))
    return f"Invitation of {row.email} revoked."


class StateFilter(admin.SimpleListFilter):
    """Filters invitations by state."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(state.value, state.label) for state in Invitation.State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        now = timezone.now()
        match self.value():
            case Invitation.State.ACCEPTED:
                return queryset.filter(accepted_at__isnull=False)
            case Invitation.State.REVOKED:
                return queryset.filter(revoked_at__isnull=False)
            case Invitation.State.EXPIRED:
                return offers.offered(queryset).filter(expires_at__lte=now)
            case Invitation.State.PENDING:
                return offers.offered(queryset).filter(expires_at__gt=now)
            case _:
                return None


class InvitationAdmin(ServiceAdmin[Invitation]):
    titled = "Invitation of {row.email}"
    form = InvitationForm
    list_display = ("email", "organization", "state", "client", "inviter_name", "created_at", "expires_at", "tenant")
    list_select_related = ("organization", "client", "tenant")
    list_filter = (StateFilter, "organization")
    search_fields = ("=email", "=id")
    search_help_text = "A complete email address in lower case, or the id of an invitation."
    autocomplete_fields = ("organization", "client", "connection")
    sortable_by = ()
    ordering = ("-created_at", "-pk")
    actions = ()
    empty_text = "No invitations yet. Add one to invite a user to an organization."

    def __init__(self, model: type[Invitation], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.object_actions = (
            ObjectAction(
                "resend",
                "Send again",
                lambda _request, row: (
                    f"The service sends another email to {row.email}. The link in the previous email stops working. An expired "
                    "invitation becomes valid again."
                ),
                _resend,
                is_offered=_is_offered,
            ),
            ObjectAction(
                "new-link",
                "Create new link",
                lambda _request, row: (
                    f"The next page shows a new link once. Previous links of {row.email} stop working, "
                    "and the validity period starts again."
                ),
                self._renew,
                is_offered=_is_offered,
                needs_proof=True,
            ),
            ObjectAction(
                "revoke",
                "Revoke invitation",
                lambda _request, row: (
                    f"{row.email} can no longer accept the invitation. This cannot be undone. You can add another invitation."
                ),
                _revoke,
                is_offered=_is_offered,
                is_dangerous=True,
            ),
        )

    def get_fieldsets(self, request: HttpRequest, obj: Invitation | None = None) -> Any:
        who, what = ["organization", "client", "connection", "email", "inviter_name"], ["given_roles", "days"]
        if obj is None:
            return [(None, {"fields": [*who, *what]}), ("Email", {"fields": ["language", "is_mailed"]})]
        given = ["roles", "user_metadata", "app_metadata", "language"]
        moments = ["created_at", "expires_at", "accepted_at", "acceptor", "revoked_at", "mail_count", "mailed_at"]
        own = [] if self.is_bound(request) else ["tenant"]
        return [(None, {"fields": ["state", *own, *who, *given]}), ("Set by the service", {"fields": moments})]

    def get_readonly_fields(self, request: HttpRequest, obj: Invitation | None = None) -> Any:
        if obj is None:
            return ()
        return [name for _, options in self.get_fieldsets(request, obj) for name in options["fields"]]

    def get_form(self, request: HttpRequest, obj: Invitation | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        form = super().get_form(request, obj, change=change, **kwargs)
        if "given_roles" in form.base_fields:
            form.base_fields["given_roles"].queryset = self.scoped_choices(request, Role).filter(deletion_started_at__isnull=True)
            form.base_fields["language"].choices = [("", "The default language of the tenant"), *self._languages(request)]
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"inviter_name": actor_of(request), **super().get_changeform_initial_data(request)}

    def has_change_permission(self, request: HttpRequest, obj: Invitation | None = None) -> bool:
        # An invitation cannot be changed, because it has been sent: revoke it and add another invitation.
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Invitation | None = None) -> bool:
        # Ended invitations stay visible until they are pruned.
        return False

    @admin.display(description="Accepted by")
    def acceptor(self, row: Invitation) -> str:
        """Return the name of the user who accepted, with a link to the user's page."""
        if row.accepted_by is None:
            return "-"
        page = reverse(f"{self.admin_site.name}:identity_user_change", args=(quote(row.accepted_by.pk),))
        return format_html('<a href="{}">{}</a>', page, label_of(row.accepted_by))

    @admin.display(description="State")
    def state(self, row: Invitation) -> str:
        state = row.state_at(timezone.now())
        return badge(state.label, _TONES[state])

    def create(self, request: HttpRequest, form: Any) -> Invitation:
        values, tenant_id = form.cleaned_data, self.tenant_for_new(request)
        connection = values["connection"]
        wanted = NewInvitation(
            inviter_name=values["inviter_name"],
            email=values["email"],
            client_id=values["client"].client_id,
            connection_id=connection.pk if connection is not None else "",
            roles=[role.pk for role in values["given_roles"]],
            life_seconds=values["days"] * _DAY,
            language=values["language"],
            is_mailed=values["is_mailed"],
        )
        return offers.create_invitation(
            tenant_id=tenant_id,
            organization_id=values["organization"].pk,
            wanted=wanted,
            address=address_beside(request.get_host(), tenant_id),
        )

    def response_add(self, request: HttpRequest, obj: Invitation, post_url_continue: str | None = None) -> HttpResponse:
        return self._link_page(request, obj)

    def invite(self, request: HttpRequest, organization: Organization, values: dict[str, Any]) -> str:
        """Invite an email address to an organization, and send the invitation to this address."""
        role: Role | None = values["role"]
        wanted = NewInvitation(
            inviter_name=actor_of(request),
            email=values["email"],
            client_id=values["client_id"].client_id,
            roles=[role.pk] if role is not None else [],
        )
        address = address_beside(request.get_host(), organization.tenant_id)
        invitation = offers.create_invitation(
            tenant_id=organization.tenant_id, organization_id=organization.pk, wanted=wanted, address=address
        )
        return f"Invitation sent to {invitation.email}."

    def _renew(self, request: HttpRequest, row: Invitation, _values: dict[str, Any]) -> HttpResponse:
        return self._link_page(request, offers.renew_invitation(**_named(row)))

    def _link_page(self, request: HttpRequest, row: Invitation) -> HttpResponse:
        """Return the page that shows a link. A redirect is not used: it would require storing the link until the next request."""
        context = {
            **self.admin_site.each_context(request),
            "title": f"Invitation of {row.email}",
            "subtitle": None,
            "original": row,
            "link": application_address(row),
            "is_mailed": bool(row.mail_digest),
            "opts": self.opts,
            "media": self.media,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/invitation_link.html", context)

    def _languages(self, request: HttpRequest) -> list[tuple[str, str]]:
        enabled = sign_in_settings(self.tenant_for_new(request)).enabled_locales or ("en",)
        return [(language, LANGUAGES[language].name if language in LANGUAGES else language) for language in enabled]

    def panel_of(self, request: HttpRequest, organization: Organization) -> Panel | None:
        """Return the panel of an organization's newest invitations; None for an account that may not see them."""
        if not request.user.has_perm("authapi.view_invitation"):
            return None
        tables, now = Tables(self.admin_site), timezone.now()
        found = Invitation.objects.of(organization.tenant_id).filter(organization=organization).select_related("client")
        rows = [
            (
                tables.linked(request, row, row.email, note=row.client.name),
                Cell(row.state_at(now).label),
                Cell(f"{row.expires_at:%Y-%m-%d %H:%M}"),
                tables.act(request, row, "resend", "Send again") if _is_offered(row) else Cell(""),
                tables.act(request, row, "revoke", "Revoke") if _is_offered(row) else Cell(""),
            )
            for row in found.order_by("-created_at", "-pk")[:_SHOWN]
        ]
        may_add = self.has_add_permission(request)
        return Panel(
            "Invitations",
            ("Email address", "State", "Valid until (UTC)", "", ""),
            rows,
            "No invitations.",
            more_url=tables.list_of(Invitation, organization__id__exact=organization.pk),
            more_text="All invitations",
            add_url=tables.add_of(Invitation, organization=organization.pk) if may_add else "",
            add_text="Invite a user with more options",
            adds=INVITE,
        )

    @property
    def invitation(self) -> ObjectAction:
        """The form above the table of `panel_of`."""
        return ObjectAction(
            INVITE,
            "Invite",
            lambda _request, row: f"A user with this email address can become a member of {row.display_name or row.name}.",
            self.invite,
            form_class=InviteForm,
            permission="authapi.add_invitation",
            tab=INVITATIONS,
            table_permission="authapi.view_invitation",
        )
