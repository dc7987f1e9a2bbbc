"""Admin page of SAML certificates: which one signs, which are published, and the three steps of a rollover."""

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
    return f"Certificate {prepare_key(row.tenant_id).kid} is published beside the current one."


def _rotate(_request: HttpRequest, row: SamlKey, _values: dict[str, Any]) -> str:
    return f"Certificate {rotate_key(row.tenant_id).kid} signs now."


def _remove(_request: HttpRequest, row: SamlKey, _values: dict[str, Any]) -> str:
    remove_key(row.tenant_id, row.kid)
    return f"Certificate {row.kid} is removed from the metadata."


class SamlKeyAdmin(ReadOnlyAdmin[SamlKey], ObjectActionsAdmin[SamlKey]):
    grows = False
    list_display = ("kid", "standing", "created_at", "rotated_at", "expires_at", "tenant")
    list_filter = ("state",)
    list_select_related = ("tenant",)
    fields = ("tenant", "kid", "standing", "fingerprint", "certificate", "created_at", "current_since", "rotated_at", "expires_at")
    empty_text = "No certificates yet. The first is made when the metadata of the tenant is loaded, or with the first SAML login."
    object_actions = (
        ObjectAction(
            "prepare",
            "Publish the next",
            lambda _request, _row: (
                "A further certificate appears in the metadata and signs nothing yet. Applications that load the metadata get it by "
                "themselves; send it to the others. Let it sign when all of them have it."
            ),
            _prepare,
            is_offered=lambda row: row.state == SamlKey.State.CURRENT,
            needs_proof=True,
        ),
        ObjectAction(
            "rotate",
            "Let it sign",
            lambda _request, _row: (
                "This certificate signs from now on. Applications that do not have it reject every login until they get it. The one "
                "before stays in the metadata until it is removed."
            ),
            _rotate,
            is_offered=lambda row: row.state == SamlKey.State.NEXT,
            is_dangerous=True,
            needs_proof=True,
        ),
        ObjectAction(
            "remove",
            "Remove",
            lambda _request, _row: "The metadata names this certificate no more, and what partners encrypt for it can no longer be opened.",
            _remove,
            is_offered=lambda row: row.state != SamlKey.State.CURRENT,
            is_dangerous=True,
            needs_proof=True,
        ),
    )

    @admin.display(description="State", ordering="state")
    def standing(self, row: SamlKey) -> str:
        return badge(row.get_state_display(), _TONES[row.state])

    @admin.display(description="SHA-256 fingerprint")
    def fingerprint(self, row: SamlKey) -> str:
        try:
            return fingerprint_of(certificate_of(row.certificate))
        except UnreadableCertificate as error:
            return str(error)
