"""Modules of the OpenID conformance suite that have no test in this folder, each with the reason."""

from __future__ import annotations

from tests.conformance.openid.plans import FAPI

_CDR = "It belongs to the Consumer Data Right of Australia, whose arrangements and sharing durations this service does not have."
_CONNECT_ID = "It belongs to the profile of ConnectID Australia, which this service does not offer as a compliance level."
_KSA = "It belongs to the profile of the Saudi central bank, which this service does not offer as a compliance level."
_GRANT_MANAGEMENT = (
    "Grant Management for OAuth 2.0 is a draft that this service does not implement. The discovery document names no endpoint for it."
)

UNWRITTEN: dict[str, str] = {
    FAPI + "cdr-sharing-duration-zero": _CDR,
    FAPI + "cdr-negative-sharing-duration": _CDR,
    FAPI + "cdr-refresh-token-introspection-expiry": _CDR,
    FAPI + "cdr-arrangement-amendment": _CDR,
    FAPI + "cdr-unrecognised-arrangement-id": _CDR,
    FAPI + "brazil-ensure-bad-payment-signature-fails": "It calls the payment API of Open Finance Brasil, and not the provider.",
    FAPI + "australia-connectid-ensure-request-object-with-exp-over-10-fails": _CONNECT_ID,
    FAPI + "australia-connectid-ensure-request-object-with-nbf-over-15-fails": _CONNECT_ID,
    FAPI + "australia-connectid-ensure-invalid-purpose-fails": _CONNECT_ID,
    FAPI + "australia-connectid-test-claims-parameter-idtoken-identity-claims": _CONNECT_ID,
    FAPI + "ksa-ensure-request-object-with-exp-over-10-fails": _KSA,
    FAPI + "ksa-ensure-request-object-with-nbf-over-10-fails": _KSA,
    FAPI + "grant-management-happy-flow": _GRANT_MANAGEMENT,
    FAPI + "grant-management-query-and-revoke": _GRANT_MANAGEMENT,
    FAPI + "grant-management-merge": _GRANT_MANAGEMENT,
    FAPI + "grant-management-replace": _GRANT_MANAGEMENT,
    FAPI + "grant-management-ensure-invalid-grant-id-fails": _GRANT_MANAGEMENT,
    FAPI + "grant-management-ensure-query-nonexistent-grant-fails": _GRANT_MANAGEMENT,
    FAPI + "grant-management-ensure-query-after-revoke-fails": _GRANT_MANAGEMENT,
    FAPI + "grant-management-ensure-wrong-client-cannot-query-grant": _GRANT_MANAGEMENT,
    FAPI + "grant-management-ensure-wrong-client-cannot-revoke-grant": _GRANT_MANAGEMENT,
}
