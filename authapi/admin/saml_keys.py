"""Admin page of SAML certificates: the current certificate, the published certificates, and the three steps of a rollover."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from authapi.models import SamlKey
from authapi.tokens.saml_keys import KeyInUse, NoNextKey, prepare_key, remove_key, rotate_key
from authapi.xml.certificates import UnreadableCertificate, certificate_of, fingerprint_of
from foundation.admin.badges import Tone, badge
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.refusals import also_refuses
from identity.admin.tenant_scope import ReadOnlyAdmin

_TONES: dict[str, Tone] = {SamlKey.State.CURRENT: "good", SamlKey.State.NEXT: "warn", SamlKey.State.PREVIOUS: "quiet"}

also_refuses(NoNextKey)
also_refuses(KeyInUse)


def _prepare(_request: HttpRequest, row: SamlKey, _values: dict[str, Any]) -> str:
    return f"Certificate {prepare_key(row.tenant_id).kid} published. The current certificate still signs."


def _rotate(_request: HttpRequest, row: SamlKey, _values: dict[str, Any]) -> str:
    return f"Certificate {rotate_key(row.tenant_id).kid} is now current."


def _remove(_request: HttpRequest, row: SamlKey, _values: dict[str, Any]) -> str:
    remove_key(row.tenant_id, row.kid)
    return f"Certificate {row.kid} removed from the metadata."


class SamlKeyAdmin(ReadOnlyAdmin[SamlKey], ObjectActionsAdmin[SamlKey]):
    grows = False
    list_display = ("kid", "standing", "created_at", "rotated_at", "expires_at", "tenant")
    list_filter = ("state",)
    list_select_related = ("tenant",)
    fields = ("tenant", "kid", "standing", "fingerprint", "certificate", "created_at", "current_since", "rotated_at", "expires_at")
    empty_text = (
        "No certificates yet. The service creates the first certificate when it first needs one, for example when an application loads "
        "the SAML metadata of the tenant."
    )
    object_actions = (
        ObjectAction(
            "prepare",
            "Publish the next certificate",
            lambda _request, _row: (
                "The service adds another certificate to the metadata, and does not sign with this certificate yet. Applications that "
                "load the metadata get the certificate automatically. Send the certificate to all other applications. When all "
                "applications have it, open the page of the certificate and choose “Make certificate current”."
            ),
            _prepare,
            is_offered=lambda row: row.state == SamlKey.State.CURRENT,
            needs_proof=True,
        ),
        ObjectAction(
            "rotate",
            "Make certificate current",
            lambda _request, _row: (
                "The service signs with this certificate from now on. Applications that do not have the certificate yet refuse logins "
                "until they get it. The previous certificate stays in the metadata until you remove it."
            ),
            _rotate,
            is_offered=lambda row: row.state == SamlKey.State.NEXT,
            is_dangerous=True,
            needs_proof=True,
        ),
        ObjectAction(
            "remove",
            "Remove certificate",
            lambda _request, _row: (
                "The service removes the certificate from the metadata, and can no longer decrypt messages that are encrypted with it."
            ),
            _remove,
            is_offered=lambda row: row.state != SamlKey.State.CURRENT,
            is_dangerous=True,
            needs_proof=True,
        ),
    )

    def badge_of(self, row: SamlKey) -> str:
        return self.standing(row)

    @admin.display(description="State", ordering="state")
    def standing(self, row: SamlKey) -> str:
        return badge(row.get_state_display(), _TONES[row.state])

    @admin.display(description="SHA-256 fingerprint")
    def fingerprint(self, row: SamlKey) -> str:
        try:
            return fingerprint_of(certificate_of(row.certificate))
        except UnreadableCertificate as error:
            return str(error)
