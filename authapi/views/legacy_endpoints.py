"""The endpoints of old clients as ASGI applications, by exact path (contract, 2.9). They call functions in `authapi.protocols.legacy`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.protocols.legacy.country import country
from authapi.protocols.legacy.cross_origin import authenticate
from authapi.protocols.legacy.delegation import delegation
from authapi.protocols.legacy.hosted_login import challenge, login
from authapi.protocols.legacy.impersonation import impersonate
from authapi.protocols.legacy.requests import LegacyRequest, Reply
from authapi.protocols.legacy.resource_owner import resource_owner
from authapi.protocols.legacy.sign_on_data import sso_data
from authapi.protocols.legacy.social_token import social_token
from authapi.protocols.legacy.token_info import token_info
from authapi.protocols.legacy.unlinking import unlink
from authapi.views.chain import Answer, Application, Call, Later, hot_endpoint, json_answer
from foundation.tenancy import tenant_bound

_Act = Callable[[LegacyRequest], Reply]


def _fast(act: _Act, call: Call) -> Answer:
    return _answered(act, _request(call))


def _slow(act: _Act, call: Call) -> Later:
    # The function runs in a slow thread, because it hashes a password or calls a provider.
    return Later(partial(_answered, act, _request(call)))


def _request(call: Call) -> LegacyRequest:
    form: dict[str, Any] = {}
    if call.body or "content-type" in call.headers:
        try:
            form = parse_body(call.headers.get("content-type", ""), call.body)
        except MalformedBody as error:
            raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    return LegacyRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge, query=call.query)


def _answered(act: _Act, request: LegacyRequest) -> Answer:
    with tenant_bound(request.host.tenant_id):
        reply = act(request)
    if reply.members is None:
        return Answer(200, reply.text.encode(), dict(reply.headers), reader=reply.reader)
    answer = json_answer(reply.members, headers=dict(reply.headers))
    return Answer(answer.status, answer.body, answer.headers, reader=reply.reader)


def _post(act: _Act, name: str, *, is_slow: bool = False, takes_cookies: bool = False) -> Application:
    return hot_endpoint(partial(_slow if is_slow else _fast, act), name=name, methods=("POST",), takes_cookies=takes_cookies)


LEGACY_ENDPOINTS: dict[str, Application] = {
    "/oauth/ro": _post(resource_owner, "resource_owner", is_slow=True),
    "/oauth/access_token": _post(social_token, "social_token", is_slow=True),
    "/delegation": _post(delegation, "delegation"),
    "/tokeninfo": _post(token_info, "token_info"),
    "/login/unlink": _post(unlink, "unlink"),
    "/users/<str:user_id>/impersonate": _post(impersonate, "impersonate"),
    "/co/authenticate": _post(authenticate, "cross_origin_login", is_slow=True, takes_cookies=True),
    "/usernamepassword/login": _post(login, "hosted_login", is_slow=True),
    "/usernamepassword/challenge": hot_endpoint(partial(_fast, challenge), name="login_challenge", methods=("POST", "GET")),
    "/user/ssodata": hot_endpoint(partial(_fast, sso_data), name="sso_data", methods=("GET",), takes_cookies=True),
    "/user/geoloc/country": hot_endpoint(partial(_fast, country), name="country", methods=("GET",)),
}
