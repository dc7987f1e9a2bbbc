"""The form of a tenant's second factors and passkeys, with what each choice means, and whom it concerns."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Exists, OuterRef

from authapi.factors.kinds import FACTORS, KINDS, kinds_of
from authapi.factors.settings_changes import DEMANDING, MOST_DAYS
from authapi.models import SecondFactorPolicy
from identity.models import EnrolledFactor, User

_FACTOR_NAMES = {
    "webauthn-platform": "This device: fingerprint, face or PIN of a computer or telephone. Cannot be phished.",
    "webauthn-roaming": "Security key: a key on USB or NFC. Cannot be phished.",
    "otp": "Authenticator app: a code of six digits that changes every 30 seconds. Needs no network.",
    "sms": "Text message: a code to a telephone. The weakest one, since numbers can be taken over; it costs you a message each time.",
    "email": "Email: a code to an address. As safe as the mailbox; it adds nothing for users who log in by email.",
    "recovery-code": "Recovery code: shown once, at the first factor, and stands in for a factor that is lost.",
}
_POLICY_NAMES = {
    SecondFactorPolicy.NEVER: "Never. Users who have a factor are not asked for it.",
    SecondFactorPolicy.ON_REQUEST: "On request: when the application asks for it, and for users who have turned it on.",
    SecondFactorPolicy.NEW_DEVICE: "In new browsers: every user, in each browser that has not passed it before.",
    SecondFactorPolicy.ALWAYS: "Always: every user, at each login, unless the browser is remembered.",
}


class SecondFactorsForm(forms.Form):
    """Fields by the names of the settings."""

    factors = forms.MultipleChoiceField(
        required=False,
        choices=[(name, _FACTOR_NAMES[name]) for name in FACTORS],
        widget=forms.CheckboxSelectMultiple,
        label="Factors",
        help_text="What users may enroll and prove. Turn on two or more, so that the loss of one locks no user out.",
    )
    policy = forms.ChoiceField(
        choices=[(policy.value, words) for policy, words in _POLICY_NAMES.items()],
        widget=forms.RadioSelect,
        label="When a login asks",
        help_text="An application may have a policy of its own. An organization may demand more than both, never less.",
    )
    remembers_browsers = forms.BooleanField(
        required=False,
        label="Remember browsers",
        help_text="Users may tick a box so that this browser is not asked again for a while. An application that asks for a second factor "
        "itself always gets one.",
    )
    remembered_days = forms.IntegerField(min_value=1, max_value=MOST_DAYS, label="Days that a browser is remembered")
    passkeys = forms.BooleanField(
        required=False,
        label="Passkeys",
        help_text="Users may log in with a passkey in place of the password. It counts as two factors at once. Each database"
        " connection has a switch of its own: authentication_methods.passkey.enabled among its options.",
    )
    offers_passkeys = forms.BooleanField(
        required=False, label="Offer a passkey after a login with a password", help_text="Users may decline; nothing is enrolled for them."
    )


def consequences(tenant_id: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what a change means for users that are there, as sentences; empty for one that troubles no user."""
    found = []
    if after["policy"] in DEMANDING and before["policy"] not in DEMANDING:
        count = users_without(tenant_id, kinds_of(after["factors"]))
        if count:
            are = "users have" if count > 1 else "user has"
            found.append(f"{count:,} {are} none of these factors yet, and must enroll one at the next login.")
    for name in before["factors"]:
        kind = next((one.kind for one in KINDS.values() if one.factor == name), "")
        gone = kind and name not in after["factors"]
        count = EnrolledFactor.objects.of(tenant_id).filter(kind=kind, is_confirmed=True).values("user").distinct().count() if gone else 0
        if count:
            have = "users have" if count > 1 else "user has"
            found.append(f"{count:,} {have} enrolled {EnrolledFactor.Kind(kind).label.lower()}, which no login takes from then on.")
    return found


def users_without(tenant_id: str, kinds: tuple[str, ...]) -> int:
    """Return how many users of a tenant have none of these kinds of factors."""
    own = EnrolledFactor.objects.of(tenant_id).filter(user=OuterRef("pk"), kind__in=kinds, is_confirmed=True)
    return User.objects.of(tenant_id).filter(~Exists(own)).count()
