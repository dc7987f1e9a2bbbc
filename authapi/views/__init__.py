"""The OAuth endpoints as ASGI applications, by exact path; `config.asgi` routes to them before Django."""

from authapi.views.chain import Application
from authapi.views.dbconnections import change_password, signup
from authapi.views.discovery import discovery, jwks
from authapi.views.passwordless import otp_challenge, passwordless_start, passwordless_verify
from authapi.views.pushed_requests import pushed_requests
from authapi.views.revocation import revocation
from authapi.views.token import token
from authapi.views.userinfo import userinfo

HOT_ENDPOINTS: dict[str, Application] = {
    "/oauth/token": token,
    "/oauth/revoke": revocation,
    "/oauth/par": pushed_requests,
    "/userinfo": userinfo,
    "/dbconnections/signup": signup,
    "/dbconnections/change_password": change_password,
    "/passwordless/start": passwordless_start,
    "/passwordless/verify": passwordless_verify,
    "/passwordless/challenge": otp_challenge,
    "/otp/challenge": otp_challenge,
    "/.well-known/jwks.json": jwks,
    "/.well-known/openid-configuration": discovery,
    "/.well-known/oauth-authorization-server": discovery,
}
