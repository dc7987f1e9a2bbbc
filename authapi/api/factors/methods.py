"""Authentication methods of a user: `/users/{id}/authentication-methods`, `/users/{id}/authentication-methods/{method}`."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlsplit

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.factors.bodies import (
    MethodToChange,
    MethodToCreate,
    MethodToSet,
    check_members,
    given_factor,
    made_key,
    refuse_voice,
)
from authapi.api.factors.documents import PASSWORD, method, password_id, password_method, wire_id
from authapi.api.factors.schemas import METHOD, METHOD_FIELDS, METHODS, METHODS_ARRAY
from authapi.factors.kinds import PASSKEY, WEBAUTHN_ROAMING
from authapi.models import TenantSettings
from authapi.tenant_settings import settings_values
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import LIST_FORMS, PROJECTION, TAKE_FORM
from foundation.api.operations import Operation
from foundation.api.queries import number_of, projection_of, switch_of
from foundation.api.refusals import Refusal, invalid_body, not_supported
from identity.api.lookups import user_at
from identity.factors.given_factors import replace_factors
from identity.factors.user_factors import MOST_FACTORS, give_factor, give_key, remove_all_factors, remove_factor, rename_factor
from identity.hosts import default_address, hosts_of
from identity.models import EnrolledFactor, PasswordCredential, User

NO_METHOD = "The authentication method does not exist."
INEXISTENT_METHOD = "inexistent_authentication_method"
_SHOWS_NUMBERS = "disable_management_api_sms_obfuscation"
_KEYS = (WEBAUTHN_ROAMING, PASSKEY)
# A user has few methods, so this list has no pages with checkpoints.
_PAGES = (*(parameter for parameter in LIST_FORMS if parameter not in TAKE_FORM), *PROJECTION)
_PAGE_SIZE = 50
_LARGEST_PAGE = 100


class AuthenticationMethodsEndpoint(Endpoint):
    """All authentication methods of a user: the password, second factors, the recovery code and passkeys."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_authentication_methods",
            "List the authentication methods of a user",
            ("read:authentication_methods",),
            200,
            METHODS,
            parameters=_PAGES,
            refuses=(404,),
        ),
        "create": Operation(
            "create_user_authentication_method",
            "Enroll a factor or passkey that was verified elsewhere; only this response contains its secret",
            ("create:authentication_methods",),
            201,
            METHOD,
            MethodToCreate,
            refuses=(404, 409),
        ),
        "update": Operation(
            "set_user_authentication_methods",
            "Replace the phones, email addresses and authenticator apps of a user; keys and passkeys stay",
            ("update:authentication_methods",),
            200,
            METHODS_ARRAY,
            MethodToSet,
            refuses=(404, 409),
            is_body_list=True,
        ),
        "destroy": Operation(
            "delete_user_authentication_methods",
            "Remove all factors, the recovery code and all passkeys of a user; the password stays",
            ("delete:authentication_methods",),
            204,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        user, query = user_at(id), request.query_params
        project = projection_of(query, METHOD_FIELDS)
        page = number_of(query, "page", minimum=0) or 0
        size = number_of(query, "per_page", minimum=1, maximum=_LARGEST_PAGE) or _PAGE_SIZE
        has_totals = switch_of(query, "include_totals", default=False)
        found = [project(document) for document in methods_of(user)]
        shown = found[page * size : (page + 1) * size]
        if not has_totals:
            return Response(shown)
        return Response({"start": page * size, "limit": size, "total": len(found), "authenticators": shown})

    def create(self, request: Request, id: str) -> Response:
        user, body = user_at(id), self.body_of(request, MethodToCreate)
        check_members(body)
        if body["type"] in _KEYS:
            return Response(method(self._given_key(user, body), masks_numbers=False), status=201)
        given = given_factor(body)
        factor = give_factor(
            tenant_id=self.tenant_id, user_id=id, kind=given.kind, address=given.address, secret=given.secret, name=given.name
        )
        # Only this response contains a generated secret.
        secret = {"totp_secret": given.secret} if given.secret else {}
        return Response({**method(factor, masks_numbers=False), **secret}, status=201)

    def update(self, request: Request, id: str) -> Response:
        user_at(id)
        items = self.list_of(request, MethodToSet, most=MOST_FACTORS) if request.data != [] else []
        for body in items:
            check_members(body)
        wanted = [given_factor(body) for body in items]
        _refuse_doubles([(one.kind, one.address.casefold() or one.secret) for one in wanted])
        found = replace_factors(tenant_id=self.tenant_id, user_id=id, wanted=wanted)
        return Response([method(factor, masks_numbers=masks_numbers()) for factor in found])

    def destroy(self, request: Request, id: str) -> Response:
        user_at(id)
        remove_all_factors(tenant_id=self.tenant_id, user_id=id, keeps_passkeys=False)
        return Response(status=204)

    def _given_key(self, user: User, body: dict[str, Any]) -> EnrolledFactor:
        place = body.get("relying_party_identifier") or urlsplit(default_address(self.tenant_id)).hostname or ""
        if place not in hosts_of(self.tenant_id):
            # A login would never request a key for another domain.
            raise invalid_body("Expected a verified domain of the tenant", "relying_party_identifier")
        return give_key(
            tenant_id=self.tenant_id,
            user_id=user.user_id,
            kind=body["type"],
            made=made_key(body),
            relying_party=place,
            name=body.get("name", ""),
        )


class SingleAuthenticationMethodEndpoint(Endpoint):
    """One authentication method of a user."""

    not_found_code = INEXISTENT_METHOD
    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation(
            "get_user_authentication_method",
            "Read an authentication method of a user",
            ("read:authentication_methods",),
            200,
            METHOD,
            refuses=(404,),
        ),
        "partial_update": Operation(
            "update_user_authentication_method",
            "Rename a factor or a passkey of a user",
            ("update:authentication_methods",),
            200,
            METHOD,
            MethodToChange,
            refuses=(404,),
        ),
        "destroy": Operation(
            "delete_user_authentication_method",
            "Remove a factor, the recovery code or a passkey of a user",
            ("delete:authentication_methods",),
            204,
            refuses=(404,),
        ),
    }

    def retrieve(self, request: Request, id: str, method_id: str) -> Response:
        user = user_at(id)
        found = next((document for document in methods_of(user) if document["id"] == method_id), None)
        if found is None:
            raise Refusal(404, NO_METHOD, INEXISTENT_METHOD)
        return Response(found)

    def partial_update(self, request: Request, id: str, method_id: str) -> Response:
        user, body = user_at(id), self.body_of(request, MethodToChange)
        factor = _factor_at(user, method_id)
        refuse_voice(body)
        if "preferred_authentication_method" in body and factor.kind != EnrolledFactor.Kind.PHONE:
            raise invalid_body("Not a property of this method", "preferred_authentication_method")
        if "name" in body:
            factor = rename_factor(tenant_id=self.tenant_id, user_id=id, device=factor.device, name=body["name"])
        return Response(method(factor, masks_numbers=masks_numbers()))

    def destroy(self, request: Request, id: str, method_id: str) -> Response:
        factor = _factor_at(user_at(id), method_id)
        remove_factor(tenant_id=self.tenant_id, user_id=id, device=factor.device)
        return Response(status=204)


def methods_of(user: User) -> list[dict[str, Any]]:
    """Return all authentication methods of a user, the password first."""
    credential = PasswordCredential.objects.filter(user=user).first()
    masks = masks_numbers()
    factors = EnrolledFactor.objects.filter(user=user).select_related("user").order_by("created_at", "pk")
    shown = [method(factor, masks_numbers=masks) for factor in factors]
    return [*([password_method(user, credential)] if credential is not None else []), *shown]


def masks_numbers() -> bool:
    """Tell whether responses mask phone numbers. A flag of the tenant disables masking."""
    return not settings_values(TenantSettings.objects.first())["flags"].get(_SHOWS_NUMBERS)


def _factor_at(user: User, method_id: str) -> EnrolledFactor:
    if method_id == password_id(user):
        raise not_supported(f"Not supported: a {PASSWORD} cannot be changed or removed at this endpoint. Change it at /users/{{id}}.")
    kind, _, device = method_id.partition("|")
    factor = EnrolledFactor.objects.filter(user=user, kind=kind, device=device).select_related("user").first()
    if factor is None or wire_id(factor) != method_id:
        raise Refusal(404, NO_METHOD, INEXISTENT_METHOD)
    return factor


def _refuse_doubles(named: list[tuple[str, str]]) -> None:
    if len(set(named)) < len(named):
        raise invalid_body("Name each method once", "body")
