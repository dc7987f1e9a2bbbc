"""The OAuth endpoints as ASGI applications, by exact path; `config.asgi` routes to them before Django."""

from authapi.views.chain import Application
from authapi.views.discovery import discovery, jwks
from authapi.views.revocation import revocation
from authapi.views.token import token
from authapi.views.userinfo import userinfo

HOT_ENDPOINTS: dict[str, Application] = {
    "/oauth/token": token,
    "/oauth/revoke": revocation,
    "/userinfo": userinfo,
    "/.well-known/jwks.json": jwks,
    "/.well-known/openid-configuration": discovery,
    "/.well-known/oauth-authorization-server": discovery,
}
