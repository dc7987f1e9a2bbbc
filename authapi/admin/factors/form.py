"""The form of a tenant's second factors and passkeys, and the effects of a change on users."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Exists, OuterRef

from authapi.factors.kinds import FACTORS, KINDS, kinds_of
from authapi.factors.settings_changes import DEMANDING, MOST_DAYS
from authapi.models import SecondFactorPolicy
from foundation.admin.shown_values import ShowsValues
from identity.models import EnrolledFactor, User

_FACTOR_NAMES = {
    "webauthn-platform": "This device: the fingerprint, face or PIN of a computer or phone. Resists phishing.",
    "webauthn-roaming": "Security key: a separate key with USB or NFC. Resists phishing.",
    "otp": "Authenticator app: a code of six digits that changes every 30 seconds. Needs no network.",
    "sms": "Text message: a code to a phone. The weakest factor, because attackers can take over phone numbers. Each login costs "
    "a message.",
    "email": "Email: a code to an email address. As secure as the mailbox. No additional security for users who log in by email.",
    "recovery-code": "Recovery code: shown once, when the user enrolls the first factor. The user enters it in place of a lost factor.",
}
_POLICY_NAMES = {
    SecondFactorPolicy.NEVER: "Never: users are not asked for a second factor, even if they have one.",
    SecondFactorPolicy.ON_REQUEST: "On request: if the application requests a second factor, or the user has enrolled one.",
    SecondFactorPolicy.NEW_DEVICE: "In new browsers: all users, in each browser that they have not used before.",
    SecondFactorPolicy.ALWAYS: "Always: all users, at each login, unless the browser is remembered.",
}


class SecondFactorsForm(ShowsValues, forms.Form):
    """A form whose fields have the names of the settings."""

    factors = forms.MultipleChoiceField(
        required=False,
        choices=[(name, _FACTOR_NAMES[name]) for name in FACTORS],
        widget=forms.CheckboxSelectMultiple,
        label="Allowed factors",
        help_text="Factors that users can enroll and use. Turn on two or more, so that a lost factor does not lock a user out.",
    )
    policy = forms.ChoiceField(
        choices=[(policy.value, words) for policy, words in _POLICY_NAMES.items()],
        widget=forms.RadioSelect,
        label="When users are asked for a second factor",
        help_text="An application can have another policy, which replaces this policy. An organization can only make the policy stricter.",
    )
    remembers_browsers = forms.BooleanField(
        required=False,
        label="Remember browsers",
        help_text="Users can choose not to be asked again in this browser for some days. If an application requests a second "
        "factor, users are asked even in remembered browsers.",
    )
    remembered_days = forms.IntegerField(min_value=1, max_value=MOST_DAYS, label="Days until a remembered browser is forgotten")
    passkeys = forms.BooleanField(
        required=False,
        label="Passkeys",
        help_text="Users can log in with a passkey instead of the password. A login with a passkey requires no second factor. You "
        "must also turn on passkeys in the settings of each database connection.",
    )
    offers_passkeys = forms.BooleanField(
        required=False, label="Offer a passkey after a login with a password", help_text="Users can decline the offer."
    )


def consequences(tenant_id: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return sentences about the effects of a change on existing users; empty if the change affects no user."""
    found = []
    if after["policy"] in DEMANDING and before["policy"] not in DEMANDING:
        count = users_without(tenant_id, kinds_of(after["factors"]))
        if count:
            are = "users have" if count > 1 else "user has"
            found.append(f"{count:,} {are} none of these factors and must enroll one at the next login.")
    for name in before["factors"]:
        kind = next((one.kind for one in KINDS.values() if one.factor == name), "")
        gone = kind and name not in after["factors"]
        count = EnrolledFactor.objects.of(tenant_id).filter(kind=kind, is_confirmed=True).values("user").distinct().count() if gone else 0
        if count:
            have = "users have" if count > 1 else "user has"
            found.append(
                f"{count:,} {have} set up this factor, which logins will no longer accept: {EnrolledFactor.Kind(kind).label.lower()}."
            )
    return found


def users_without(tenant_id: str, kinds: tuple[str, ...]) -> int:
    """Return the number of users in a tenant that have no factor of these kinds."""
    own = EnrolledFactor.objects.of(tenant_id).filter(user=OuterRef("pk"), kind__in=kinds, is_confirmed=True)
    return User.objects.of(tenant_id).filter(~Exists(own)).count()
