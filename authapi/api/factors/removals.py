"""Older endpoints that remove factors of a user, forget remembered browsers, and renew the recovery code."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.factors.schemas import RECOVERY_CODE
from authapi.factors.kinds import TOTP
from authapi.login.remembered_browsers import forget_all_browsers
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.refusals import invalid_path, not_supported
from identity.api.lookups import user_at
from identity.factors.user_factors import note, remove_all_factors, remove_factors_of_kind, renew_recovery_code

# The provider names that clients send, and the kind of factor of each name.
_PROVIDERS = {"google-authenticator": TOTP}
_OTHER_PROVIDERS = ("duo",)
_CHANGES_USERS = ("update:users",)


class AuthenticatorsEndpoint(Endpoint):
    """All second factors of a user."""

    operations: ClassVar[dict[str, Operation]] = {
        "destroy": Operation(
            "delete_user_authenticators",
            "Remove all second factors and the recovery code of a user; passkeys stay",
            ("delete:guardian_enrollments",),
            204,
            refuses=(404,),
        ),
    }

    def destroy(self, request: Request, id: str) -> Response:
        user_at(id)
        remove_all_factors(tenant_id=self.tenant_id, user_id=id)
        return Response(status=204)


class MultifactorProviderEndpoint(Endpoint):
    """The factors of a user whose kind belongs to the provider name in the URL, such as `google-authenticator`."""

    path_schemas: ClassVar[dict[str, Any]] = {"provider": {"enum": [*_PROVIDERS, *_OTHER_PROVIDERS]}}
    operations: ClassVar[dict[str, Operation]] = {
        "destroy": Operation(
            "delete_user_multifactor_provider", "Remove the authenticator apps of a user", _CHANGES_USERS, 204, refuses=(404,)
        ),
    }

    def destroy(self, request: Request, id: str, provider: str) -> Response:
        user_at(id)
        if provider in _OTHER_PROVIDERS:
            raise not_supported(f"Not supported: this service has no factors of {provider}.")
        if provider not in _PROVIDERS:
            raise invalid_path(f"Expected one of {', '.join((*_PROVIDERS, *_OTHER_PROVIDERS))}", "provider")
        remove_factors_of_kind(tenant_id=self.tenant_id, user_id=id, kind=_PROVIDERS[provider])
        return Response(status=204)


class RememberedBrowsersEndpoint(Endpoint):
    """The browsers that remember the second factor of a user."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "invalidate_remembered_browsers",
            "Forget all remembered browsers of a user, so that each requires a second factor again",
            _CHANGES_USERS,
            204,
            refuses=(404,),
        ),
    }

    def create(self, request: Request, id: str) -> Response:
        user = user_at(id)
        count = forget_all_browsers(user)
        if count:
            note(user, "Forgot the remembered browsers", browsers=count)
        return Response(status=204)


class RecoveryCodeEndpoint(Endpoint):
    """The recovery code of a user. The caller must deliver it to the user, because it is never shown again."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "regenerate_user_recovery_code",
            "Replace the recovery code of a user; only this response contains the new code",
            _CHANGES_USERS,
            200,
            RECOVERY_CODE,
            refuses=(404, 409),
        ),
    }

    def create(self, request: Request, id: str) -> Response:
        user_at(id)
        return Response({"recovery_code": renew_recovery_code(tenant_id=self.tenant_id, user_id=id)})
