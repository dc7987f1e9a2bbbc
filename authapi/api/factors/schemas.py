"""OpenAPI schemas of second factors and passkeys."""

from __future__ import annotations

from authapi.factors.kinds import FACTORS
from authapi.models import SecondFactorPolicy
from foundation.api.list_schemas import fields_of, list_of, reference
from foundation.api.operations import SWITCH, TEXT, TIME, WHOLE, Schema
from identity.models import EnrolledFactor

TYPES = ("password", *EnrolledFactor.Kind.values)
_TEXTS: Schema = {"type": "array", "items": TEXT}
_STATUS: Schema = {**TEXT, "enum": ["pending", "confirmed"]}
COMPONENTS: dict[str, Schema] = {
    "AuthenticationMethod": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("id", "name", "email", "key_id", "public_key", "relying_party_identifier"), TEXT),
            "type": {**TEXT, "enum": list(TYPES)},
            "confirmed": SWITCH,
            "phone_number": {**TEXT, "description": "Only the last digits, unless a flag of the tenant disables masking."},
            "preferred_authentication_method": {**TEXT, "enum": ["sms"]},
            "authentication_methods": {"type": "array", "items": {"type": "object", "properties": {"type": TEXT, "id": TEXT}}},
            "totp_secret": {**TEXT, "description": "Only in the response to the request that created the secret."},
            **dict.fromkeys(("credential_device_type", "identity_user_id", "user_handle", "aaguid"), TEXT),
            "credential_backed_up": SWITCH,
            "transports": _TEXTS,
            **dict.fromkeys(("created_at", "enrolled_at", "last_auth_at", "last_password_reset"), TIME),
        },
    },
    "Enrollment": {
        "type": "object",
        "required": ["id", "status"],
        "properties": {
            **dict.fromkeys(("id", "type", "name", "identifier", "phone_number"), TEXT),
            "status": _STATUS,
            **dict.fromkeys(("enrolled_at", "last_auth"), TIME),
        },
    },
    "GuardianFactor": {
        "type": "object",
        "required": ["enabled"],
        "properties": {"name": TEXT, "enabled": SWITCH, "trial_expired": SWITCH},
    },
    "GuardianPolicy": {**TEXT, "enum": ["all-applications", "confidence-score"]},
    "SecondFactors": {
        "type": "object",
        "properties": {
            "factors": {"type": "array", "items": {**TEXT, "enum": list(FACTORS)}},
            "policy": {**TEXT, "enum": SecondFactorPolicy.values},
            **dict.fromkeys(("remembers_browsers", "passkeys", "offers_passkeys"), SWITCH),
            "remembered_days": WHOLE,
        },
    },
    "OrganizationSecondFactors": {
        "type": "object",
        "required": ["policy"],
        "properties": {"policy": {**TEXT, "enum": SecondFactorPolicy.values, "nullable": True}},
    },
}
METHOD = reference("AuthenticationMethod")
METHODS = list_of("authenticators", METHOD)
METHOD_FIELDS = fields_of(COMPONENTS["AuthenticationMethod"])
METHODS_ARRAY: Schema = {"type": "array", "items": METHOD}
ENROLLMENT = reference("Enrollment")
FACTOR = reference("GuardianFactor")
FACTOR_LIST: Schema = {"type": "array", "items": FACTOR}
POLICY_LIST: Schema = {"type": "array", "items": reference("GuardianPolicy")}
SECOND_FACTORS = reference("SecondFactors")
ORGANIZATION_SECOND_FACTORS = reference("OrganizationSecondFactors")
SETUP_TICKET: Schema = {
    "type": "object",
    "required": ["ticket_id", "ticket_url"],
    "properties": {
        "ticket_id": {**TEXT, "description": "The id of the ticket. It does not open the page."},
        "ticket_url": {**TEXT, "description": "The link."},
    },
}
RECOVERY_CODE: Schema = {"type": "object", "required": ["recovery_code"], "properties": {"recovery_code": TEXT}}
