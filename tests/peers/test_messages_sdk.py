"""The mail provider, mail templates, texts of prompts and languages, set by the unmodified Python client over real HTTP."""

from __future__ import annotations

import json
import subprocess

import pytest

from config.launcher.peers import PLACE
from identity.models import Tenant
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, events_token, global_client
from tests.peers.test_management_sdk import DRIVERS

pytestmark = pytest.mark.peer

BODY = ["BadRequestError", 400, "invalid_body"]
PROVIDER = {
    "none": ["NotFoundError", 404, "inexistent_email_provider"],
    "change without a row": ["NotFoundError", 404, "inexistent_email_provider"],
    "made": ["smtp", True, "shop@example.test", "smtp.example.test", 587],
    "read equals created": True,
    "contains the password": False,
    "created twice": ["ConflictError", 409, None],
    "changed": False,
    "host after the change": "smtp.example.test",
    "other provider": ["BadRequestError", 400, "operation_not_supported"],
    "header injected": BODY,
    "gone": ["NotFoundError", 404, "inexistent_email_provider"],
}
TEMPLATES = {
    # The client has no class for errors with this status.
    "none": ["ApiError", 404, "inexistent_email_template"],
    "change without a row": ["NotFoundError", 404, "inexistent_email_template"],
    "read equals created": True,
    "made": ["verify_email", True, "shop@example.test", "Hello", "liquid", 3600, "https://example.com/done"],
    "created twice": ["ConflictError", 409, None],
    "changed": ["Welcome", True],
    "replaced": None,
    "created by put": "reset_email",
    "unsafe": BODY,
    "unreadable": BODY,
    "unknown": ["ApiError", 404, "inexistent_email_template"],
}
LANGUAGES = {
    "enabled": ["en", "de", "ar"],
    "read": ["en", "de", "ar"],
    "without texts": BODY,
    "before a text is written": {},
    "written": {"login": {"title": "Willkommen"}},
    "in another language": {},
    "unknown text": BODY,
    "unknown language": BODY,
    "unknown prompt": BODY,
    "after the reset": {},
    "prompts": ["new", False],
}
UNALLOWED = ["ForbiddenError", 403, "insufficient_scope"]


def test_the_python_client_sets_the_texts_for_users(tenant: Tenant) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    tokens = access_token(tenant, global_client(tenant)), events_token(tenant)
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        command = [str(python), str(DRIVERS / "messages.py"), f"http://127.0.0.1:{web.address[1]}/api/v2", *tokens]
        done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["provider"] == PROVIDER
    assert seen["templates"] == TEMPLATES
    assert seen["languages"] == LANGUAGES
    assert seen["without the scope"] == dict.fromkeys(("provider", "templates", "texts", "settings"), UNALLOWED)
    assert seen["without a token"] == {"provider": ["UnauthorizedError", 401, None]}
