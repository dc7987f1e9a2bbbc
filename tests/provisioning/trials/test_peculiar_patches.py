"""A server that splits the URN of an extension like a path. The write check reads the user again, and so finds the fault."""

from __future__ import annotations

from collections.abc import Callable

from provisioning.actions.setups import draft_setup
from provisioning.models import Action
from provisioning.trials.connection_test import run_connection_test
from tests.factories.scim import Received, Wire, misbehaving_server, reply
from tests.provisioning.trials.test_connection_test import ScimServer

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
MAPPING = [
    {"path": "externalId", "source": "user_id"},
    {"path": "userName", "source": "email"},
    {"path": "active", "source": "blocked != `true`"},
    {"path": f"{ENTERPRISE}:department", "source": "nickname"},
]


class SplitsUrns(ScimServer):
    """Like saml-jackson: the server splits the path of an extension's attribute at a dot in its URN, and stores a member `urn:...:2`."""

    def patch(self, request: Received, identifier: str) -> Wire:
        for operation in request.json["Operations"]:
            if "path" not in operation:
                self.users[identifier] |= operation["value"]
                continue
            outer, _, inner = operation["path"].partition(".")
            self.users[identifier] |= {outer: {inner: operation["value"]}} if inner else {outer: operation["value"]}
        return reply(204)


def test_another_mode_is_recommended_if_a_patch_corrupts_the_name_of_an_extension(
    make_action: Callable[..., Action],
) -> None:
    with misbehaving_server(server := SplitsUrns()) as running:
        action = make_action(running.base_url, options={"update_mode": "patch_per_attribute", "enterprise": True}, mapping=MAPPING)
        report = run_connection_test(draft_setup(action), actor="somebody", with_write_check=True)
    judged = {step.name: step.finding for step in report.steps.taken}
    assert judged["patch_per_attribute"].state == "warning"
    assert "enterprise" in judged["patch_per_attribute"].text
    assert report.findings["recommended_update_mode"] != "patch_per_attribute"
    assert server.users == {}
