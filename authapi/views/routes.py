"""The URLs of logins: the endpoints that begin them, their pages, and logouts."""

from __future__ import annotations

from django.urls import URLPattern, path

from authapi.accounts.account_mails import RESET_PATH, RESET_REQUEST_PATH, UNBLOCK_PATH
from authapi.accounts.passwordless.starting import LINK_PATH
from authapi.accounts.setup_links import PATH as SETUP_PATH
from authapi.invitations.links import MAIL_PATH as INVITATION_MAIL_PATH
from authapi.login.round_trips import FRAMES_PATH, NEXT_PATH
from authapi.pages.branding import PATH as BRAND_PATH
from authapi.pages.branding import PICTURE_ROUTE, brand_picture, brand_stylesheet
from authapi.pages.connection_test import go_to_provider
from authapi.pages.consent import consent_page
from authapi.pages.email_verification import verify_email
from authapi.pages.factors.challenge import challenge_page
from authapi.pages.factors.enrolment import enrolment_page
from authapi.pages.factors.passkeys import PATH as PASSKEY_PATH
from authapi.pages.factors.passkeys import offer_page
from authapi.pages.factors.recovery import recovery_code_page
from authapi.pages.factors.setup_link import setup_page
from authapi.pages.invitation import invitation_page, open_invitation
from authapi.pages.login import login_page
from authapi.pages.logout_round_trip import logout_frames, next_participant
from authapi.pages.organization import organization_page
from authapi.pages.passwordless import ADDRESS_PATH, CODE_PATH, address_page, code_page
from authapi.pages.passwordless_link import CONFIRM_PATH, confirm_page, link_page
from authapi.pages.provider_logout import provider_logout
from authapi.pages.reset_password import request_page, reset_page
from authapi.pages.select_account import select_account_page
from authapi.pages.sign_up import sign_up_page
from authapi.pages.unblock import unblock_page
from authapi.protocols.account.sections import account_urls
from authapi.protocols.ciba.entry import DENIED_PATH as CIBA_DENIED_PATH
from authapi.protocols.ciba.entry import DONE_PATH as CIBA_DONE_PATH
from authapi.protocols.ciba.notifying import PATH as APPROVE_PATH
from authapi.protocols.ciba.views import approval_denied, approved, open_request
from authapi.protocols.device.codes_page import CODE_PATH as DEVICE_CODE_PATH
from authapi.protocols.device.codes_page import code_page as device_code_page
from authapi.protocols.device.entry import DENIED_PATH, DONE_PATH
from authapi.protocols.device.entry import PATH as ACTIVATE_PATH
from authapi.protocols.device.views import activate, activated, activation_denied
from authapi.protocols.legacy import account_links, ticket_login
from authapi.protocols.oauth.views.authorize import authorize
from authapi.protocols.oauth.views.check_session import PATH as CHECK_SESSION
from authapi.protocols.oauth.views.check_session import check_session
from authapi.protocols.oauth.views.logout import confirmed_logout, logged_out, plain_logout, rp_logout
from authapi.protocols.saml.logout_views import single_logout
from authapi.protocols.saml.views import client_page, metadata, sign_on
from authapi.protocols.wsfed.entry import CLEAN_UP_PATH
from authapi.protocols.wsfed.metadata import PATH as FEDERATION_METADATA
from authapi.protocols.wsfed.views import metadata as federation_metadata
from authapi.protocols.wsfed.views import passive, wsfed_page
from authapi.upstream.connection_tests import TEST_PATH
from authapi.upstream.login import CALLBACK_PATH
from authapi.upstream.saml.logout import LOGOUT_PATH
from authapi.views.passwordless_redirect import PATH as VERIFY_REDIRECT_PATH
from authapi.views.passwordless_redirect import verify_redirect
from authapi.views.provider_answers import login_callback
from identity.mail import verification


def sign_in_urls() -> list[URLPattern]:
    """Return the URLs of login and logout."""
    return [
        path("authorize", authorize),
        path("u/login", login_page, name="hosted_login"),
        path("u/signup", sign_up_page),
        path(RESET_REQUEST_PATH.removeprefix("/"), request_page),
        path(RESET_PATH.removeprefix("/"), reset_page),
        path(UNBLOCK_PATH.removeprefix("/"), unblock_page),
        path(verification.PATH.removeprefix("/"), verify_email),
        path(BRAND_PATH.removeprefix("/"), brand_stylesheet),
        path(PICTURE_ROUTE, brand_picture),
        path("u/organization", organization_page, name="hosted_organization"),
        path("u/consent", consent_page, name="hosted_consent"),
        path("u/select-account", select_account_page, name="hosted_select_account"),
        path(ticket_login.VERIFICATION_PATH, ticket_login.verification_page, name="cross_origin_verification"),
        path(account_links.PAGE_PATH, account_links.link_page, name="hosted_link"),
        path("u/invitation", invitation_page, name="hosted_invitation"),
        path(INVITATION_MAIL_PATH.removeprefix("/"), open_invitation),
        path("v2/logout", plain_logout),
        path("oidc/logout", rp_logout, name="oidc_logout"),
        path("u/logout", confirmed_logout, name="hosted_logout"),
        path("u/logged-out", logged_out),
        path(NEXT_PATH.removeprefix("/"), next_participant),
        path(FRAMES_PATH.removeprefix("/"), logout_frames),
        path(CHECK_SESSION, check_session),
        path(LOGOUT_PATH, provider_logout),
        path(TEST_PATH, go_to_provider),
        path(CALLBACK_PATH, login_callback),
        *_factor_urls(),
        *_passwordless_urls(),
        *_saml_urls(),
        *_wsfed_urls(),
        *_device_urls(),
        *account_urls(),
        *_ciba_urls(),
    ]


def _factor_urls() -> list[URLPattern]:
    """Return the URLs of second factors: the pages during a login, and the page of setup links."""
    return [
        path(PASSKEY_PATH.removeprefix("/"), offer_page, name="hosted_passkey"),
        path("u/mfa", challenge_page, name="hosted_mfa"),
        path("u/mfa-enroll", enrolment_page, name="hosted_mfa_enroll"),
        path(SETUP_PATH.removeprefix("/"), setup_page),
        path("u/mfa/recovery-code", recovery_code_page, name="hosted_mfa_new_code"),
    ]


def _passwordless_urls() -> list[URLPattern]:
    """Return the URLs of logins by a code or a link."""
    return [
        path(ADDRESS_PATH.removeprefix("/"), address_page, name="hosted_passwordless"),
        path(CODE_PATH.removeprefix("/"), code_page, name="hosted_passwordless_code"),
        path(CONFIRM_PATH.removeprefix("/"), confirm_page, name="hosted_passwordless_confirm"),
        path(LINK_PATH.removeprefix("/"), link_page),
        path(VERIFY_REDIRECT_PATH, verify_redirect),
    ]


def _saml_urls() -> list[URLPattern]:
    """Return the URLs of SAML, with and without the client in the path.

    Without a client in the path, the Issuer of the message names the client.
    """
    published = client_page(metadata, methods=("GET",))
    logout, sign_in = client_page(single_logout), client_page(sign_on)
    return [
        path("samlp/metadata", published),
        path("samlp/metadata/<str:client_id>", published),
        path("samlp", sign_in),
        path("samlp/logout", logout),
        path("samlp/<str:client_id>", sign_in),
        path("samlp/<str:client_id>/logout", logout),
    ]


def _wsfed_urls() -> list[URLPattern]:
    """Return the URLs of WS-Federation, with and without the client in the path.

    Without a client in the path, the realm names the client.
    """
    published, sign_in = wsfed_page(federation_metadata, methods=("GET",)), wsfed_page(passive)
    return [
        path("wsfed", sign_in),
        path(f"wsfed/{FEDERATION_METADATA}", published),
        path("wsfed/<str:client_id>", sign_in),
        path(f"wsfed/<str:client_id>/{FEDERATION_METADATA}", published),
        path(CLEAN_UP_PATH.removeprefix("/"), logout_frames),
    ]


def _device_urls() -> list[URLPattern]:
    """Return the URLs of logins for devices: the page for the user code, and the last page."""
    return [
        path(ACTIVATE_PATH.removeprefix("/"), activate, name="activate"),
        path(DONE_PATH.removeprefix("/"), activated),
        path(DENIED_PATH.removeprefix("/"), activation_denied),
        path(DEVICE_CODE_PATH.removeprefix("/"), device_code_page),
    ]


def _ciba_urls() -> list[URLPattern]:
    """Return the URLs of approvals: the link for the user, and the last page."""
    return [
        path(APPROVE_PATH.removeprefix("/"), open_request, name="approve"),
        path(CIBA_DONE_PATH.removeprefix("/"), approved),
        path(CIBA_DENIED_PATH.removeprefix("/"), approval_denied),
    ]
