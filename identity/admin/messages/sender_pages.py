"""The page of the providers that send a tenant's mails and text messages. Staff can enter secrets, but the page never shows them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator

from identity.admin.assurance import needs_proof
from identity.admin.messages.forms import PROVIDER_FORMS
from identity.admin.refusals import add_to_form, refusals
from identity.admin.tenant_page import TenantPage
from identity.messages.providers import create_provider, delete_provider, provider_of, update_provider
from identity.models import MessageProvider
from identity.models.messages import Channel

_CHANGE = "identity.change_messageprovider"
_TITLES = {Channel.EMAIL: "Emails", Channel.SMS: "Text messages"}
_SAVED = {
    Channel.EMAIL: "Provider saved. To test the provider, open a message on the page “Mails and messages”, and send a test email.",
    Channel.SMS: "Provider saved.",
}


class SendersPage(TenantPage):
    """A page with both channels, and a form for each."""

    label = "identity.senders-page"
    title = "Mail server and text messages"
    url_name = "identity_senders"
    permission = "identity.view_messageprovider"

    def urls(self) -> list[URLPattern]:
        place = "identity/senders"
        return [
            path(f"{place}/", self.for_tenant(self.both), name=self.url_name),
            path(f"{place}/<slug:channel>/", self.for_tenant(self.one, _CHANGE), name=f"{self.url_name}_one"),
            path(f"{place}/<slug:channel>/delete/", self.for_tenant(self.delete, _CHANGE), name=f"{self.url_name}_delete"),
        ]

    def both(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Show the provider of each channel."""
        channels = [
            {
                "title": _TITLES[channel],
                "row": provider_of(tenant_id, channel),
                "platform": _platform(channel),
                "url": self._at("one", channel),
            }
            for channel in Channel
        ]
        context = {
            "channels": channels,
            "may_change": self.may_see(request, _CHANGE),
            "messages_url": reverse(f"{self.site.name}:identity_messages"),
        }
        return self.page(request, "admin/senders.html", context)

    @method_decorator(needs_proof)
    def one(self, request: HttpRequest, tenant_id: str, channel: str) -> HttpResponse:
        """Show and save the provider of a channel. Secrets are not shown."""
        known = _channel(channel)
        row = provider_of(tenant_id, known)
        form: Any = PROVIDER_FORMS[known](request.POST or None, row=row, label_suffix="")
        if request.method == "POST" and form.is_valid():
            try:
                _save(tenant_id, known, row, form.values())
            except refusals() as refusal:
                add_to_form(form, refusal)
            else:
                messages.success(request, _SAVED[known])
                return HttpResponseRedirect(self.address)
        context = {"form": form, "row": row, "channel": known, "title": _TITLES[known], "back_url": self.address}
        return self.page(request, "admin/sender.html", context | {"delete_url": self._at("delete", known)})

    @method_decorator(needs_proof)
    def delete(self, request: HttpRequest, tenant_id: str, channel: str) -> HttpResponse:
        """Delete the provider of a channel after a confirmation."""
        known = _channel(channel)
        row = provider_of(tenant_id, known)
        if row is None:
            return HttpResponseRedirect(self.address)
        if request.method == "POST":
            delete_provider(tenant_id=tenant_id, channel=known)
            messages.success(request, "Provider deleted.")
            return HttpResponseRedirect(self.address)
        title = f"Delete the provider of {_TITLES[known].lower()}?"
        context = {"row": row, "platform": _platform(known), "back_url": self.address, "title": title}
        return self.page(request, "admin/sender_delete.html", context)

    def _at(self, what: str, channel: str) -> str:
        return reverse(f"{self.site.name}:{self.url_name}_{what}", kwargs={"channel": channel})


def _channel(name: str) -> Channel:
    try:
        return Channel(name)
    except ValueError as error:
        raise Http404 from error


def _platform(channel: str) -> bool:
    """Tell whether the platform sends messages for tenants without a provider."""
    return bool(settings.MAIL_IS_CONFIGURED if channel == Channel.EMAIL else settings.SMS_SENDER)


def _save(tenant_id: str, channel: Channel, row: MessageProvider | None, values: dict[str, Any]) -> None:
    if row is None:
        create_provider(tenant_id=tenant_id, channel=channel, **{"name": MessageProvider.Name.SMTP, **values})
    else:
        update_provider(tenant_id=tenant_id, channel=channel, **values)
