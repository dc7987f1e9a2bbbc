"""The addresses of logins: of the endpoints that begin them, of their pages, and of logouts."""

from __future__ import annotations

from django.urls import URLPattern, path

from authapi.accounts.account_mails import RESET_PATH, RESET_REQUEST_PATH, UNBLOCK_PATH
from authapi.accounts.passwordless.starting import LINK_PATH
from authapi.invitations.links import MAIL_PATH as INVITATION_MAIL_PATH
from authapi.login.round_trips import NEXT_PATH
from authapi.pages.branding import PATH as BRAND_PATH
from authapi.pages.branding import PICTURE_ROUTE, brand_picture, brand_stylesheet
from authapi.pages.connection_test import go_to_provider
from authapi.pages.consent import consent_page
from authapi.pages.email_verification import verify_email
from authapi.pages.invitation import invitation_page, open_invitation
from authapi.pages.login import login_page
from authapi.pages.logout_round_trip import next_participant
from authapi.pages.organization import organization_page
from authapi.pages.passwordless import ADDRESS_PATH, CODE_PATH, address_page, code_page
from authapi.pages.passwordless_link import CONFIRM_PATH, confirm_page, link_page
from authapi.pages.provider_logout import provider_logout
from authapi.pages.reset_password import request_page, reset_page
from authapi.pages.select_account import select_account_page
from authapi.pages.sign_up import sign_up_page
from authapi.pages.unblock import unblock_page
from authapi.protocols.legacy import account_links, ticket_login
from authapi.protocols.oauth.views.authorize import authorize
from authapi.protocols.oauth.views.logout import confirmed_logout, logged_out, plain_logout, rp_logout
from authapi.protocols.saml.logout_views import single_logout
from authapi.protocols.saml.views import client_page, metadata, sign_on
from authapi.protocols.wsfed.entry import CLEAN_UP_PATH
from authapi.protocols.wsfed.metadata import PATH as FEDERATION_METADATA
from authapi.protocols.wsfed.views import clean_up, passive, wsfed_page
from authapi.protocols.wsfed.views import metadata as federation_metadata
from authapi.upstream.connection_tests import TEST_PATH
from authapi.upstream.login import CALLBACK_PATH
from authapi.upstream.saml.logout import LOGOUT_PATH
from authapi.views.passwordless_redirect import PATH as VERIFY_REDIRECT_PATH
from authapi.views.passwordless_redirect import verify_redirect
from authapi.views.provider_answers import login_callback
from identity.mail import verification


def sign_in_urls() -> list[URLPattern]:
    """Return the addresses at which people log in and out."""
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
        path("oidc/logout", rp_logout),
        path("u/logout", confirmed_logout, name="hosted_logout"),
        path("u/logged-out", logged_out),
        path(NEXT_PATH.removeprefix("/"), next_participant),
        path(LOGOUT_PATH, provider_logout),
        path(TEST_PATH, go_to_provider),
        path(CALLBACK_PATH, login_callback),
        *_passwordless_urls(),
        *_saml_urls(),
        *_wsfed_urls(),
    ]


def _passwordless_urls() -> list[URLPattern]:
    """Return the addresses of logins by a code or a link."""
    return [
        path(ADDRESS_PATH.removeprefix("/"), address_page, name="hosted_passwordless"),
        path(CODE_PATH.removeprefix("/"), code_page, name="hosted_passwordless_code"),
        path(CONFIRM_PATH.removeprefix("/"), confirm_page, name="hosted_passwordless_confirm"),
        path(LINK_PATH.removeprefix("/"), link_page),
        path(VERIFY_REDIRECT_PATH, verify_redirect),
    ]


def _saml_urls() -> list[URLPattern]:
    """Return the addresses of SAML, with the client in the address and without: then the Issuer of a message names it."""
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
    """Return the addresses of WS-Federation, with the client in the address and without: then the realm names it."""
    published, sign_in = wsfed_page(federation_metadata, methods=("GET",)), wsfed_page(passive)
    return [
        path("wsfed", sign_in),
        path(f"wsfed/{FEDERATION_METADATA}", published),
        path("wsfed/<str:client_id>", sign_in),
        path(f"wsfed/<str:client_id>/{FEDERATION_METADATA}", published),
        path(CLEAN_UP_PATH.removeprefix("/"), clean_up),
    ]
