"""What is known about SCIM servers of well-known makers, as data: defaults of options, and what an operator should know. Pure."""

from __future__ import annotations

from dataclasses import dataclass

GENERIC = ""


@dataclass(frozen=True)
class ServerProfile:
    """One kind of server. What an action sets itself comes before its profile.

    `update_mode` is a way that can remove an attribute: PUT, or PATCH with an operation per attribute.
    """

    label: str
    update_mode: str = "put"
    requests_per_second: float | None = None
    notes: tuple[str, ...] = ()


# From the makers' own documentation; the write check of the connection test has the last word on update modes.
PROFILES: dict[str, ServerProfile] = {
    GENERIC: ServerProfile("Any server that keeps to RFC 7644"),
    "atlassian": ServerProfile("Atlassian", notes=("A deletion unlinks and deactivates the account; only a new record brings it back.",)),
    "aws": ServerProfile(
        "AWS IAM Identity Center",
        notes=("Takes one e-mail address, phone number and address per user, and PATCH without a path for single attributes only.",),
    ),
    "deel": ServerProfile("Deel", requests_per_second=5),
    "entra": ServerProfile("Microsoft Entra ID", update_mode="patch_per_attribute", notes=("Its tokens do not allow PUT.",)),
    "github": ServerProfile(
        "GitHub Enterprise",
        notes=(
            "Wants to be written by one system only.",
            "A deletion suspends the account for good; below an organization, deactivation removes the link and the id.",
        ),
    ),
    "gitlab": ServerProfile("GitLab", update_mode="patch_per_attribute", notes=("Of an update it takes active and nothing else.",)),
    "google": ServerProfile("Google Cloud Identity", update_mode="patch_per_attribute", notes=("Knows no PUT.",)),
    "launchdarkly": ServerProfile(
        "LaunchDarkly", notes=("A deactivated user is updated only together with its activation; the owner cannot be deactivated.",)
    ),
    "miro": ServerProfile("Miro", requests_per_second=0.6, notes=("Takes 20 deletions in 30 seconds.",)),
    "pagerduty": ServerProfile("PagerDuty", notes=("A blocked user is deleted there: active false means so.",)),
    "peakon": ServerProfile("Peakon", requests_per_second=6.5, notes=("Counts 25,000 requests an hour.",)),
    "salesforce": ServerProfile("Salesforce", update_mode="patch_per_attribute", notes=("Users cannot be deleted, only deactivated.",)),
    "slack": ServerProfile(
        "Slack", requests_per_second=3, notes=("A deletion deactivates.", "All SCIM applications of an organization share one limit.")
    ),
    "tealium": ServerProfile("Tealium", notes=("A userName never changes there.",)),
}
