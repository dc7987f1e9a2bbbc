"""`/mfa/*`: an application requests, enrolls, lists and removes second factors (contract 2.11).

The `mfa_token` of a waiting login proves the first factor only. With this token, an application may request a challenge, read the list of
factors, and enroll a second factor for a user who has none. To enroll a further factor, or to remove one, the application needs an access
token for `{issuer}mfa/`. Such a token requires a login with a second factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from authapi import client_auth
from authapi.accounts.event_context import context_of
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.factors.association import Association, associate_address, associate_app, has_usable_factor
from authapi.factors.challenges import Prover, send_code
from authapi.factors.demands import usable_kinds
from authapi.factors.kinds import EMAIL, KINDS, PHONE, RECOVERY_CODE, TOTP, is_second_to
from authapi.factors.limits import TooManyMessages
from authapi.factors.messages import CannotSend
from authapi.factors.settings import factor_settings
from authapi.factors.transactions import FirstProof, find_transaction, is_over, transaction_of_access_token
from authapi.failures import RequestRefused
from authapi.failures.factors import FactorCase
from authapi.failures.requests import RequestCase
from authapi.grants.password import person_behind
from authapi.grants.second_factor import prover_of, waiting_login
from authapi.models import Client, FactorTransaction
from authapi.possession.holders import BEARER, DPOP, SCHEMES, NotHeld, Shown, require_held
from authapi.possession.presented import Asked
from authapi.token_request import TokenRequest
from authapi.tokens.audiences import is_factors_audience
from authapi.tokens.contexts import SECOND_FACTOR
from authapi.tokens.keys import trust
from authapi.tokens.refresh_tokens import Sender
from authapi.tokens.verifying import TokenRefused, verify_own_token
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from authapi.views.client_words import in_words_of_client
from foundation.change_context import change_context
from foundation.tenancy import tenant_bound
from identity.factors.user_factors import factor_named, factors_of, remove_factor
from identity.messages.numbers import masked_address, masked_number
from identity.models import EnrolledFactor, User
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound

ENROLL, READ, REMOVE = "enroll", "read:authenticators", "remove:authenticators"
# The claim `gty` of the tokens that an application gets when it confirms an enrollment that it began with an access token.
_GRANT_CLAIM = "mfa"
_FRESH = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store", "Pragma": "no-cache"}
_OTP, _OOB = "otp", "oob"
_OF_CHANNEL = {"sms": PHONE, "email": EMAIL}
_LISTED = (*EnrolledFactor.SECOND_FACTORS, EnrolledFactor.Kind.RECOVERY_CODE)


@dataclass(frozen=True)
class _Caller:
    """The user of a request, and the transaction for the proof of a factor.

    With an `mfa_token`, this is the transaction of the waiting login. With an access token, it is a new transaction, and `scopes` are the
    scopes of the access token.
    """

    user: User
    prover: Prover
    row: FactorTransaction
    scopes: frozenset[str] = frozenset()
    has_token: bool = False


# --- /mfa/challenge -----------------------------------------------------------------------------------------------------------------


def _challenge(request: TokenRequest) -> Answer:
    client = client_auth.authenticate(request)
    row = waiting_login(request, client)
    prover = prover_of(row, person_behind(request, client))
    kind, factor = _chosen(request, row, prover)
    if kind == TOTP or factor is None:
        return json_answer({"challenge_type": _OTP}, headers=_FRESH)
    sent = _sending(partial(send_code, prover, factor))
    return json_answer({"challenge_type": _OOB, "oob_code": sent.handle, "binding_method": "prompt"}, headers=_FRESH)


def _chosen(request: TokenRequest, row: FactorTransaction, prover: Prover) -> tuple[str, EnrolledFactor | None]:
    """Return the factor to prove: the factor that is named in the request, otherwise the strongest factor that the application supports."""
    wanted = (request.text("challenge_type") or f"{_OTP} {_OOB}").split()
    if not {_OTP, _OOB} & set(wanted):
        raise RequestRefused(FactorCase.UNSUPPORTED_CHALLENGE, types=" ".join(wanted)[:100])
    named, channel = request.text("authenticator_id"), request.text("oob_channel")
    offered = [kind for kind in factor_settings(row.tenant_id).kinds if is_second_to(kind, frozenset(row.methods))]
    owned = [factor for kind in offered for factor in factors_of(row.user, (kind,)) if KINDS[kind].type in wanted]
    if named is not None:
        owned = [factor for factor in owned if _wire_id(factor) == named]
    if channel is not None:
        owned = [factor for factor in owned if KINDS[factor.kind].channel in ("", channel)]
    if not owned:
        raise RequestRefused(FactorCase.ASSOCIATION_REQUIRED)
    return owned[0].kind, owned[0]


# --- /mfa/associate -----------------------------------------------------------------------------------------------------------------


def _associate(request: TokenRequest, call: Call) -> Answer:
    caller = _caller(request, call)
    _require_right_to_enroll(caller, request)
    kind = _wanted_kind(request, caller)
    try:
        made = _sending(partial(_begun, request, caller, kind))
    except (AlreadyExists, Conflict) as error:
        raise RequestRefused(FactorCase.NOT_ENROLLED, reason=str(error)) from error
    except Invalid as error:
        reason = "; ".join(text for texts in error.errors.values() for text in texts)
        raise RequestRefused(FactorCase.NOT_ENROLLED, reason=reason) from error
    members: dict[str, Any] = {"authenticator_type": KINDS[kind].type}
    if kind == TOTP:
        members |= {"secret": made.secret, "barcode_uri": made.address}
    else:
        members |= {"oob_channel": KINDS[kind].channel, "oob_code": made.handle, "binding_method": "prompt"}
    if made.recovery_code:
        members["recovery_codes"] = [made.recovery_code]
    return json_answer(members, headers=_FRESH)


def _require_right_to_enroll(caller: _Caller, request: TokenRequest) -> None:
    if caller.has_token:
        if ENROLL not in caller.scopes:
            raise RequestRefused(FactorCase.LACKS_SCOPE, reason=f"The scope {ENROLL} is needed.")
        return
    # If the user already has a factor, the password must not be enough to add another factor. Otherwise an attacker with the password could
    # add a factor and prove it instead of the existing factor.
    if not caller.row.may_enroll or has_usable_factor(caller.prover, frozenset(caller.row.methods)):
        raise RequestRefused(FactorCase.ALREADY_ENROLLED, audience=f"{request.host.issuer}mfa/")


def _wanted_kind(request: TokenRequest, caller: _Caller) -> str:
    types, channels = _texts(request, "authenticator_types"), _texts(request, "oob_channels")
    if not types:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="authenticator_types")
    kinds = [TOTP] if _OTP in types else []
    if _OOB in types:
        kinds += [_OF_CHANNEL[channel] for channel in channels if channel in _OF_CHANNEL]
    usable = usable_kinds(caller.user.tenant_id)
    kind = next((kind for kind in kinds if kind in usable and is_second_to(kind, frozenset(caller.row.methods))), None)
    if kind is None:
        raise RequestRefused(FactorCase.TYPE_NOT_OFFERED, type=" ".join((*types, *channels))[:100])
    return kind


def _begun(request: TokenRequest, caller: _Caller, kind: str) -> Association:
    context = context_of(request.host, caller.prover.client, ip=caller.prover.place.ip, user_agent=caller.prover.place.user_agent)
    with change_context(context):
        if kind == TOTP:
            return associate_app(caller.prover)
        return associate_address(caller.prover, kind, request.required("phone_number" if kind == PHONE else "email"))


# --- /mfa/authenticators --------------------------------------------------------------------------------------------------------------


def _authenticators(request: TokenRequest, call: Call) -> Answer:
    caller = _caller(request, call)
    if caller.has_token and READ not in caller.scopes:
        raise RequestRefused(FactorCase.LACKS_SCOPE, reason=f"The scope {READ} is needed.")
    settings = factor_settings(caller.user.tenant_id)
    shown = [*settings.kinds, *((RECOVERY_CODE,) if settings.has_recovery_codes else ())]
    return json_answer([_document(factor) for factor in factors_of(caller.user, shown)], headers=_FRESH)


def _removed(request: TokenRequest, call: Call) -> Answer:
    caller = _caller(request, call)
    if REMOVE not in caller.scopes:
        # The token of a waiting login never has this scope, because a password alone must not remove the second factor.
        raise RequestRefused(FactorCase.LACKS_SCOPE, reason=f"A token for {request.host.issuer}mfa/ with the scope {REMOVE} is needed.")
    user, (_, _, device) = caller.user, call.named.get("id", "").rpartition("|")
    context = context_of(request.host, caller.prover.client, ip=caller.prover.place.ip, user_agent=caller.prover.place.user_agent)
    try:
        factor = factor_named(user, device)
        if factor.kind not in _LISTED or _wire_id(factor) != call.named.get("id"):
            raise NotFound
        with change_context(context):
            remove_factor(tenant_id=user.tenant_id, user_id=user.user_id, device=device, is_by_user=True)
    except NotFound as error:
        raise RequestRefused(FactorCase.UNKNOWN_AUTHENTICATOR) from error
    return Answer(204, b"", {"Cache-Control": "no-store"})


def _document(factor: EnrolledFactor) -> dict[str, Any]:
    members: dict[str, Any] = {"id": _wire_id(factor), "authenticator_type": factor.kind, "type": factor.kind, "active": True}
    if factor.kind in KINDS:
        kind = KINDS[factor.kind]
        members |= {"authenticator_type": kind.type, "type": kind.factor}
        if kind.channel:
            members |= {"oob_channel": kind.channel, "name": _masked(factor)}
    if factor.name:
        members.setdefault("name", factor.name)
    return members | {"created_at": factor.created_at.isoformat()}


def _masked(factor: EnrolledFactor) -> str:
    return masked_address(factor.address) if factor.kind == EMAIL else masked_number(factor.address)


def _wire_id(factor: EnrolledFactor) -> str:
    """Return the id that clients use: the kind and the device."""
    prefix = {PHONE: "sms", EMAIL: "email"}.get(factor.kind, factor.kind)
    return f"{prefix}|{factor.device}"


# --- What the endpoints share -----------------------------------------------------------------------------------------------------------


def _caller(request: TokenRequest, call: Call) -> _Caller:
    """Return the user of the bearer token: an `mfa_token`, or a token for `{issuer}mfa/`. Raises `RequestRefused`."""
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    named = next((known for known in SCHEMES if known.lower() == scheme.lower()), "")
    if not named or not token:
        raise RequestRefused(FactorCase.INVALID_BEARER)
    if token.count(".") == 2:
        return _of_access_token(request, call, named, token)
    row = find_transaction(call.host.tenant_id, token)
    if row is None or is_over(row) or named != BEARER:
        raise RequestRefused(FactorCase.INVALID_BEARER)
    return _Caller(row.user, prover_of(row, _sender(call)), row)


def _of_access_token(request: TokenRequest, call: Call, scheme: str, token: str) -> _Caller:
    try:
        claims = verify_own_token(token, host=call.host)
        if claims.confirmation or scheme == DPOP:
            require_held(claims.confirmation, Shown(scheme, token, Asked(call.host, call.method, _path(call), call.headers)))
    except NotHeld as error:
        refused = RequestRefused(FactorCase.INVALID_BEARER, headers=error.headers)
        raise refused from error
    except TokenRefused as error:
        raise RequestRefused(FactorCase.INVALID_BEARER) from error
    hosts = trust.get(call.host.tenant_id).hosts
    audience = next((one for one in claims.audiences if is_factors_audience(one, hosts)), "")
    user = User.objects.of(call.host.tenant_id).select_related("connection").filter(user_id=claims.subject).first()
    client = Client.objects.of(call.host.tenant_id).filter(client_id=claims.client_id, revoked_at=None).first()
    if not audience or claims.is_machine or user is None or user.blocked or client is None:
        raise RequestRefused(FactorCase.INVALID_BEARER)
    proof = FirstProof(
        client=client,
        user=user,
        connection=user.connection,
        organization=None,
        methods=(SECOND_FACTOR,),
        grant=_GRANT_CLAIM,
        audience=audience,
        scope=" ".join(sorted(claims.scopes)),
        key=str((claims.confirmation or {}).get("jkt", "")),
        ip=call.address,
    )
    row = transaction_of_access_token(proof, token, expires_at=datetime.fromtimestamp(claims.expires_at, UTC))
    return _Caller(user, prover_of(row, _sender(call)), row, scopes=frozenset(claims.scopes), has_token=True)


def _sender(call: Call) -> Sender:
    return Sender(ip=call.address, user_agent=call.headers.get("user-agent", ""))


def _path(call: Call) -> str:
    if call.method == "POST":
        return "/mfa/associate"
    return f"/mfa/authenticators/{call.named['id']}" if "id" in call.named else "/mfa/authenticators"


def _sending(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except TooManyMessages as refused:
        raise RequestRefused(FactorCase.TOO_MANY_MESSAGES, rate=refused.rate) from refused
    except CannotSend as error:
        raise RequestRefused(FactorCase.NO_SENDER) from error


def _texts(request: TokenRequest, name: str) -> list[str]:
    value = request.form.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameter {name} must be a list of strings.")
    return value


def _endpoint(work: Callable[[TokenRequest, Call], Answer], call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body) if call.body else {}
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    with tenant_bound(call.host.tenant_id):
        return in_words_of_client(lambda same: work(same, call), request)


mfa_challenge = hot_endpoint(partial(_endpoint, lambda request, _call: _challenge(request)), name="mfa_challenge", methods=("POST",))
mfa_associate = hot_endpoint(partial(_endpoint, _associate), name="mfa_associate", methods=("POST",))
mfa_authenticators = hot_endpoint(partial(_endpoint, _authenticators), name="mfa_authenticators", methods=("GET",))
mfa_authenticator = hot_endpoint(partial(_endpoint, _removed), name="mfa_authenticators", methods=("DELETE",))
