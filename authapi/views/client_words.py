"""Refusals with the standard statuses and codes, for clients with the setting `oauth_standard_errors` or with a compliance level."""

from __future__ import annotations

from collections.abc import Callable

from oauthlib.oauth2 import OAuth2Error

from authapi.client_auth import named_client
from authapi.compliance.enforcing import INTERACTION_HEADER, interaction_headers
from authapi.compliance.levels import answers_as_standard, level_of
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase, engine_failure
from authapi.failures.standard import standard_failure
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer


def in_words_of_client(work: Callable[[TokenRequest], Answer], request: TokenRequest) -> Answer:
    """Do the work of an endpoint. Its refusals are raised with the status and code that the client of the request expects.

    A request without a known client of the tenant is refused with the status and code of the upstream service.
    """
    try:
        return work(request)
    except RequestRefused as refused:
        _word(refused, request)
        raise
    except OAuth2Error as error:
        translated = RequestRefused(OAuthCase.ENGINE_REFUSED, description="")
        translated.failure = engine_failure(error)
        _word(translated, request)
        raise translated from error


def echoed_headers(request: TokenRequest, client: Client) -> dict[str, str]:
    """Return the header that identifies a request and its answer in the logs of client and service.

    It is returned only if the client's level requires it.
    """
    return interaction_headers(request.headers, level_of(client.settings)) if INTERACTION_HEADER in request.headers else {}


def _word(refused: RequestRefused, request: TokenRequest) -> None:
    client = named_client(request)
    if client is None:
        return
    refused.headers |= echoed_headers(request, client)
    if not answers_as_standard(client.settings):
        return
    refused.failure = standard_failure(refused.failure, refused.case)
    if refused.failure.status == 401 and request.headers.get("authorization", "").lower().startswith("basic "):
        # RFC 6749, 5.2. Other refusals have no challenge, because some libraries do not read the body of an answer with a challenge.
        refused.headers["WWW-Authenticate"] = f'Basic realm="{request.host.issuer}"'
