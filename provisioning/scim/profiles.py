"""Profiles of known SCIM servers as data: defaults of options, and notes for operators. Pure."""

from __future__ import annotations

from dataclasses import dataclass

GENERIC = ""


@dataclass(frozen=True)
class ServerProfile:
    """One kind of server. Options of the action override its profile.

    `update_mode` is an update mode with which the service can remove attributes: PUT, or PATCH with an operation per attribute.
    """

    label: str
    update_mode: str = "put"
    requests_per_second: float | None = None
    notes: tuple[str, ...] = ()


# Source: the vendors' documentation. The write check of the connection test verifies the update mode.
PROFILES: dict[str, ServerProfile] = {
    GENERIC: ServerProfile("Any server that complies with RFC 7644"),
    "atlassian": ServerProfile("Atlassian", notes=("A deletion unlinks and deactivates the account; only a new record restores it.",)),
    "aws": ServerProfile(
        "AWS IAM Identity Center",
        notes=(
            "Accepts one e-mail address, one phone number and one address per user.",
            "Accepts PATCH without a path only for single attributes.",
        ),
    ),
    "deel": ServerProfile("Deel", requests_per_second=5),
    "entra": ServerProfile(
        "Microsoft Entra ID", update_mode="patch_per_attribute", notes=("Tokens of Microsoft Entra ID do not allow PUT requests.",)
    ),
    "github": ServerProfile(
        "GitHub Enterprise",
        notes=(
            "Only one system may write users to this server.",
            "A deletion suspends the account permanently; in an organization, deactivation removes the link and the id.",
        ),
    ),
    "gitlab": ServerProfile("GitLab", update_mode="patch_per_attribute", notes=("An update can change only the attribute active.",)),
    "google": ServerProfile("Google Cloud Identity", update_mode="patch_per_attribute", notes=("Does not support PUT.",)),
    "launchdarkly": ServerProfile(
        "LaunchDarkly", notes=("An update of a deactivated user must also activate the user. The owner cannot be deactivated.",)
    ),
    "miro": ServerProfile("Miro", requests_per_second=0.6, notes=("Accepts 20 deletions per 30 seconds.",)),
    "pagerduty": ServerProfile("PagerDuty", notes=("Blocking a user (active: false) deletes the user on the server.",)),
    "peakon": ServerProfile("Peakon", requests_per_second=6.5, notes=("Limits requests to 25,000 per hour.",)),
    "salesforce": ServerProfile("Salesforce", update_mode="patch_per_attribute", notes=("Users cannot be deleted, only deactivated.",)),
    "slack": ServerProfile(
        "Slack",
        requests_per_second=3,
        notes=("A deletion deactivates the user.", "The SCIM applications of an organization share one limit."),
    ),
    "tealium": ServerProfile("Tealium", notes=("A userName cannot be changed.",)),
}
