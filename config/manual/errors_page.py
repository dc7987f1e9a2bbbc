"""The page of error codes: of the management interface, of streams, of the authentication interface, of deliveries."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from authapi.failures.ciba import CibaCase
from authapi.failures.device import DeviceCase
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.registration import RegistrationCase
from authapi.failures.requests import RequestCase
from authapi.failures.saml import SamlCase
from authapi.failures.wsfed import WsFedCase
from authapi.problems import problem_body
from config.manual import error_words
from config.manual.markdown import code, codes, fence, page, table
from config.manual.source import argument, calls, class_values, value_of
from events.api import STREAM_ERROR_CODES
from events.stream import reasons
from foundation.api.refusals import invalid_body
from provisioning.runs.failures import ActionError

# The classes of refusals. For each class, the arguments of a call: the position of the status, the position of the error code, and the
# keyword of the error code.
_REFUSALS = {"Refusal": (0, 2, "error_code"), "ApiProblem": (0, 2, "error_code"), "Refused": (0, 2, "code")}

_MANAGEMENT = """# Error codes

## Management interface

Every error of the management interface, and every error of `GET /events` before its stream opens, has the same body. `message` is for
people and may change; programs use `statusCode` and, if present, `errorCode`.
"""
_STATUSES = """| Status | Meaning for a program |
|---|---|
| 400, 404, 413, 415 | The request is invalid; if you repeat the request, it fails again. |
| 401 | The token is missing, wrong or expired: get a new token and repeat the request once. |
| 403 | The client may not do this. |
| 409 | The resource is being deleted, already exists, or is in a conflicting state: read it again. |
| 410 | The cursor is too old; the body contains `earliest_offset` and `earliest_time`. |
| 429, 503 | Wait as long as `Retry-After` or `X-RateLimit-Reset` says, and repeat. |
| 500 | The service met an unexpected condition; the log lines of the service have the details. |"""
_STREAM = """## Inside a stream

The service sends an `error` message before it ends a stream that it opened with 200. If the message has an offset, resume at that offset.
If a stream ends without an `error` message, the network has cut the connection: reconnect with the last offset."""
_AUTHENTICATION = """## Authentication interface

`/oauth/token`, `/oauth/revoke`, `/userinfo`, `/authorize` and the hosted pages answer with `error` and `error_description`, as
in RFC 6749. `/authorize` sends both members to the redirect address of the client if possible; otherwise a page shows both. Text in
braces is a placeholder. Some statuses differ from RFC 6749, because existing client libraries expect these statuses."""
_DELIVERIES = """## Deliveries

Each failed attempt has a kind. The kind decides what happens next. You can filter dead letters by kind."""
_SKIPS = """### Reasons to skip

An event that needs no write ends as *skipped*, which is a success, with one of these reasons. Installed actions may have other reasons."""


def errors_page() -> str:
    """Return the page."""
    return page(
        _MANAGEMENT,
        fence("json", json.dumps(_management_example(), indent=2)),
        _STATUSES,
        table(("`errorCode`", "Status", "Meaning"), _management_rows()),
        _STREAM,
        table(("Code", "What to do", "Messages"), _stream_rows()),
        _AUTHENTICATION,
        fence("json", json.dumps(_authentication_example())),
        table(("Status", "`error`", "`error_description`"), _authentication_rows()),
        _DELIVERIES,
        table(("Kind", "Raised as", "Meaning", "Next"), _failure_rows()),
        _SKIPS,
        table(("Reason", "Meaning"), ((code(reason), error_words.SKIPS[reason]) for reason in skip_reasons())),
    )


def _management_example() -> dict[str, Any]:
    refusal = invalid_body("Object didn't pass validation for format email", "email")
    return problem_body(refusal.status, refusal.message, refusal.error_code)


def _authentication_example() -> dict[str, str]:
    failure = OAuthCase.INVALID_CODE.failure
    return {"error": failure.error, "error_description": failure.description}


def management_codes() -> dict[str, set[int]]:
    """Return every `errorCode` in the source, with its statuses."""
    found: dict[str, set[int]] = defaultdict(set)
    for name, (status_at, code_at, keyword) in _REFUSALS.items():
        for module, call in calls(name):
            status = value_of(argument(call, status_at, "status"), module)
            given = argument(call, code_at, keyword)
            value = "{database strategy}_idp_error" if isinstance(given, ast.JoinedStr) else value_of(given, module)
            if value is not None and status is not None:
                found[value].add(status)
    for value in class_values("not_found_code"):
        if value is not None:
            found[value].add(404)
    return dict(found)


def skip_reasons() -> list[str]:
    """Return every reason for which an action of this service skips an event."""
    return sorted({str(value_of(call.args[0], module)) for module, call in calls("skipped")})


def _management_rows() -> Iterator[tuple[str, str, str]]:
    for name, statuses in sorted(management_codes().items()):
        yield code(name), ", ".join(map(str, sorted(statuses))), error_words.MANAGEMENT[name]


def _stream_rows() -> Iterator[tuple[str, str, str]]:
    known = [each for each in vars(reasons).values() if isinstance(each, reasons.Reason)]
    for name in STREAM_ERROR_CODES:
        yield code(name), error_words.STREAM[name], " ".join(f"*{each.message}*" for each in known if each.code == name)


def _authentication_rows() -> Iterator[tuple[str, str, str]]:
    for case in (*RequestCase, *OAuthCase, *DeviceCase, *CibaCase, *RegistrationCase, *LoginCase, *SamlCase, *WsFedCase):
        row = case.failure
        yield str(row.status), code(row.error), row.description


def _failure_rows() -> Iterator[tuple[str, str, str, str]]:
    for kind, meaning in error_words.FAILURES.items():
        classes = [each for each in _failures(ActionError) if each.kind == kind]
        sentence = (classes[0].__doc__ or "").partition("\n")[0].rstrip(".")
        yield code(kind), codes(each.__name__ for each in classes), f"{sentence[:1].upper()}{sentence[1:]}.", meaning


def _failures(root: type[ActionError]) -> Iterator[type[ActionError]]:
    yield root
    for each in root.__subclasses__():
        if each.__module__ == ActionError.__module__:
            yield from _failures(each)
