"""The OAuth endpoints as ASGI applications, by exact path; `config.asgi` routes to them before Django."""

from authapi.views.chain import Application
from authapi.views.ciba_requests import PATH as BC_AUTHORIZE
from authapi.views.ciba_requests import ciba_requests
from authapi.views.dbconnections import change_password, signup
from authapi.views.device_codes import device_codes
from authapi.views.discovery import discovery, jwks
from authapi.views.global_revocation import PATH as GLOBAL_REVOCATION
from authapi.views.global_revocation import global_revocation
from authapi.views.introspection import introspection
from authapi.views.passkeys import passkey_challenge, passkey_register
from authapi.views.passwordless import otp_challenge, passwordless_start, passwordless_verify
from authapi.views.pushed_requests import pushed_requests
from authapi.views.registration import client_registration
from authapi.views.revocation import revocation
from authapi.views.second_factors import mfa_associate, mfa_authenticator, mfa_authenticators, mfa_challenge
from authapi.views.token import token
from authapi.views.userinfo import userinfo

HOT_ENDPOINTS: dict[str, Application] = {
    "/oauth/token": token,
    "/oauth/revoke": revocation,
    "/oauth/par": pushed_requests,
    "/oauth/device/code": device_codes,
    BC_AUTHORIZE: ciba_requests,
    "/oidc/register": client_registration,
    "/oauth/introspect": introspection,
    GLOBAL_REVOCATION: global_revocation,
    "/userinfo": userinfo,
    "/dbconnections/signup": signup,
    "/dbconnections/change_password": change_password,
    "/passwordless/start": passwordless_start,
    "/passwordless/verify": passwordless_verify,
    "/passwordless/challenge": otp_challenge,
    "/otp/challenge": otp_challenge,
    "/passkey/challenge": passkey_challenge,
    "/passkey/register": passkey_register,
    "/mfa/challenge": mfa_challenge,
    "/mfa/associate": mfa_associate,
    "/mfa/authenticators": mfa_authenticators,
    "/mfa/authenticators/<str:id>": mfa_authenticator,
    "/.well-known/jwks.json": jwks,
    "/.well-known/openid-configuration": discovery,
    "/.well-known/oauth-authorization-server": discovery,
}
