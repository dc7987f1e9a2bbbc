"""Admin pages of users, their linked identities and their password records."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db import models
from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from foundation.admin.badges import badge, json_block
from foundation.admin.json_fields import pretty
from foundation.admin.list_filters import YesOrNoFilter
from foundation.admin.value_fields import HOW_TO_ENTER, ValuesField
from identity.admin.bulk_actions import bulk_action, delete_selected
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import label_of
from identity.admin.people.user_panels import ACCESS, ADDITIONS, UserPanels
from identity.admin.people.user_search import found_by_query, is_query
from identity.admin.row_pages import RowPagesAdmin
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.models import Connection, EnrolledFactor, LinkedIdentity, PasswordCredential, User
from identity.search.time_limit import SearchTookTooLong, search_time_limited
from identity.services import users
from identity.services.profile_rules import check_password, personal_data
from identity.services.row_acts import BLOCK_USERS, UNBLOCK_USERS

# The label of a tab. Another app adds the tables on this tab, such as sessions and blocks.
SECURITY = "Security"
_METADATA = ("user_metadata", "app_metadata")
_NAMES = ("name", "given_name", "family_name", "nickname", "username", "phone_number", "phone_verified", "picture")
_MACHINE = ("multifactor", "logins_count", "last_login", "last_ip", "last_password_reset", "created_at", "updated_at")


class UserForm(ServiceForm):
    identifier = forms.CharField(
        required=False, max_length=255, help_text="The part of the user id after the “|”. If empty, the service chooses it."
    )
    password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Only for users of a database connection. If empty, a new user has no password; an existing user keeps the password.",
    )
    user_metadata = ValuesField(label="User metadata", help_text=f"Values that the user may change, such as preferences. {HOW_TO_ENTER}")
    app_metadata = ValuesField(label="App metadata", help_text=f"Values that only applications and administrators set. {HOW_TO_ENTER}")

    class Meta:
        model = User
        fields = ()  # The admin class defines in its fieldsets which fields are shown.
        labels = {"multifactor": "Second factor"}
        help_texts = {
            "email_verified": "Checked: the user has proven that the email address is their own. If you change the address, saving clears "
            "this box. If the new address is proven, too, then check the box again, and save again.",
            "multifactor": f"“{EnrolledFactor.PROVIDER}” means that the user has a second factor. The tab Security lists the factors.",
            "phone_number": "A plus sign, the country code and the number, such as +4915112345678.",
            "picture": "Address of a picture of the user.",
        }


class LinkForm(forms.Form):
    secondary = forms.CharField(label="Id of the other user", max_length=300, help_text="The user id, such as database|abc.")


def merge_of(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the change that turns `old` into `new` if an update merges it into `old`: removed keys are null."""
    return {**{key: None for key in old if key not in new}, **new} if new else {}


def _link(request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    users.link_users(tenant_id=row.tenant_id, primary_id=row.user_id, secondary_id=values["secondary"].strip())
    return f"{values['secondary'].strip()} is now an identity of {label_of(row)}."


def _block(request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    users.block_user(tenant_id=row.tenant_id, user_id=row.user_id)
    return f"{label_of(row)} blocked."


def _unblock(request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    users.unblock_user(tenant_id=row.tenant_id, user_id=row.user_id)
    return f"{label_of(row)} can log in again."


_BLOCK_MANY = "The users can no longer log in. Subscribers receive user.updated for each of them."
_UNBLOCK_MANY = "The users can log in again. Subscribers receive user.updated for each of them."


class UserAdmin(RowPagesAdmin[User], ServiceAdmin[User]):
    form = UserForm
    list_display = ("person", "state", "connection", "user_id", "created_at", "tenant")
    list_filter = ("connection", ("blocked", YesOrNoFilter), "email_verified", "created_at")
    indexed_filters = ("connection", "created_at")
    list_select_related = ("connection", "tenant")
    search_fields = ("email", "name", "nickname", "username")
    search_help_text = (
        "Email address, name or username. A complete email address or user id is found fastest. "
        "Or a query: email:*@corp.com AND NOT blocked:true"
    )
    autocomplete_fields = ("connection",)
    actions = (
        bulk_action(BLOCK_USERS, permission="change", effect=_BLOCK_MANY, is_dangerous=True),
        bulk_action(UNBLOCK_USERS, permission="change", effect=_UNBLOCK_MANY),
        delete_selected,
    )
    empty_text = "No users yet. Add one here, import users with the management interface, or let users sign up."
    deletion_effect = "The linked identities and the password are deleted, too. Subscribers receive user.deleted."
    id_field = "user_id"
    first_tab = "Profile"
    events_tab = "Events and deliveries"
    primary_action = "timeline"
    object_actions = (
        ObjectAction("block", "Block",
                     lambda _request, row: f"{label_of(row)} can no longer log in. Subscribers receive user.updated.", _block,
                     is_offered=lambda row: not row.blocked, is_dangerous=True),
        ObjectAction("unblock", "Unblock",
                     lambda _request, row: f"{label_of(row)} can log in again. Subscribers receive user.updated.", _unblock,
                     is_offered=lambda row: bool(row.blocked)),
        *ADDITIONS,
        ObjectAction("link", "Link another user",
                     lambda _request, row: f"The other user and its metadata are deleted. Its login becomes an identity of "
                     f"{label_of(row)}, so both logins open this account. Subscribers receive user.deleted for the other user "
                     f"and user.updated for {label_of(row)}.", _link,
                     form_class=LinkForm, is_dangerous=True),
    )  # fmt: skip

    class Media:
        css: ClassVar[dict[str, list[str]]] = {"all": ["theme/user_page.css"]}

    def __init__(self, model: type[User], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        shown = UserPanels(admin_site)
        self.tabs = {ACCESS: [shown.organizations, shown.groups, shown.roles], SECURITY: [], "Identities": [shown.identities]}

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        if obj is None:
            first = ["connection", "email", "email_verified", "password"]
            return [(None, {"fields": first}), ("Profile", {"fields": [*_NAMES, "identifier"]}), ("Metadata", {"fields": _METADATA})]
        profile = ["connection", "email", "email_verified", *_NAMES, *(["password"] if obj.connection.is_database else [])]
        return [(None, {"fields": profile}), ("Metadata", {"fields": _METADATA}),
                ("Set by the service", {"fields": _MACHINE, "classes": ["collapse"]})]  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        return (*_MACHINE, *(("connection",) if obj is not None else ()))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Preselect the oldest database connection: most manually added users belong to it."""
        given: dict[str, Any] = super().get_changeform_initial_data(request)
        first = self.scoped_choices(request, Connection).filter(strategy=settings.DATABASE_STRATEGY).order_by("created_at").first()
        return given if first is None else {"connection": first.pk, **given}

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # The index on `created_at` begins with the tenant, so it serves only the list of one tenant. The list of all tenants uses the order
        # of the primary key.
        return ("-created_at", "-pk") if self.is_bound(request) else ("-pk",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list. If a query takes too long, show a message instead of an error page."""
        term = request.GET.get("q", "").strip()
        if request.method != "GET" or not is_query(term):
            return super().changelist_view(request, extra_context)
        try:
            with search_time_limited():
                return super().changelist_view(request, extra_context)
        except SearchTookTooLong:
            messages.error(
                request, f"The search for {term[:200]} took too long. Make the search more specific, such as a complete email address."
            )
            return redirect(request.path)

    def found_by_index(self, request: HttpRequest, rows: models.QuerySet[User], term: str) -> models.QuerySet[User] | None:
        """Find users by an index: with an indexed query, a complete email address or a complete user id.

        Returns None for other terms. Returns None also for an email address or an id in the list of all tenants, because both indexes begin
        with the tenant.
        """
        if is_query(term):
            return found_by_query(request, rows, term, only_indexed=True)
        if not self.is_bound(request):
            return None
        if "|" in term:
            return rows.filter(user_id=term)
        exact = rows.alias(lower_email=Lower("email")).filter(lower_email=term.lower())
        return exact if "@" in term and exact.order_by().values("pk")[:1].exists() else None

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[User], search_term: str
    ) -> tuple[models.QuerySet[User], bool]:
        """Search by query if the term contains the name of a field, by user id if it contains a bar, otherwise by the search fields."""
        term = search_term.strip()
        if is_query(term):
            found = found_by_query(request, queryset, term)
            return (queryset.none() if found is None else found), False
        return (queryset.filter(user_id=term), False) if "|" in term else super().get_search_results(request, queryset, search_term)

    def heading_of(self, row: User) -> str:
        return label_of(row)

    @admin.display(description="User")
    def person(self, row: User) -> str:
        return label_of(row)

    @admin.display(description="State")
    def state(self, row: User) -> str:
        return badge("Blocked", "bad") if row.blocked else badge("Active", "good")

    def create(self, request: HttpRequest, form: Any) -> User:
        values = {name: value for name, value in form.cleaned_data.items() if value not in (None, "", {})}
        if values.get("password"):
            check_password(values["connection"], values["password"], values)
        return users.create_user(tenant_id=self.tenant_for_new(request), **values)

    def change(self, request: HttpRequest, row: User, form: Any) -> None:
        changes = form.changes(without=("password",))
        for name in _METADATA:
            if name in changes:
                changes[name] = merge_of(form.initial[name] or {}, changes[name])
        if form.cleaned_data.get("password"):
            changes["password"] = form.cleaned_data["password"]
            check_password(row.connection, changes["password"], {**personal_data(row), **changes}, user=row)
        if changes:
            users.update_user(tenant_id=row.tenant_id, user_id=row.user_id, changes=changes)


def _unlink(request: HttpRequest, row: LinkedIdentity, values: dict[str, Any]) -> str:
    users.unlink_identity(tenant_id=row.tenant_id, user_id=row.user.user_id, provider=row.provider, identifier=row.identifier)
    return f"{row} is a separate user again."


class LinkedIdentityAdmin(ReadOnlyAdmin[LinkedIdentity], ObjectActionsAdmin[LinkedIdentity]):
    list_display = ("__str__", "user", "connection", "created_at", "tenant")
    list_filter = ("connection",)
    list_select_related = ("user", "connection", "tenant")
    search_fields = ("identifier__exact", "user__user_id__exact")
    search_help_text = (
        "The identifier of an identity (in a user id, the part after the “|”), or the id of the user to whom the identity is linked."
    )
    sortable_by = ()
    # The order of the unique index of identities in a tenant.
    ordering = ("provider", "identifier")
    fields = ("tenant", "user", "connection", "provider", "identifier", "profile", "created_at")
    readonly_fields = ("profile",)
    empty_text = "No linked identities. To link two users, open one of them and choose “Link another user”."
    object_actions = (
        ObjectAction("unlink", "Unlink", lambda _request, row: f"{row} becomes a separate user again, without metadata. "
                     "Subscribers receive user.updated and user.created.", _unlink),
    )  # fmt: skip

    @admin.display(description="Profile data")
    def profile(self, row: LinkedIdentity) -> str:
        return json_block(pretty(row.profile_data)) if row.profile_data else "-"


class PasswordCredentialAdmin(ReadOnlyAdmin[PasswordCredential]):
    """Shows that a user has a password, and the date of the password. Never shows the hash."""

    tenant_lookup = "user__tenant_id"
    is_named_by_user = True
    list_display = ("user", "changed_at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact",)
    sortable_by = ()
    ordering = ("-pk",)
    search_help_text = "Id of a user."
    fields = ("user", "changed_at")
    empty_text = "No passwords. Set one on the page of a user of a database connection."
