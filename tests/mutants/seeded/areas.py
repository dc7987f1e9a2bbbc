"""The modules of each area, and the tests that check these modules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Area:
    """Modules whose mutants are drawn together, and test files, fast files first. For each mutant, a test in these files must fail.

    `keeps_database` is false if mutants can change the schema of the database; each run then has its own database. `in_process` means that
    no test runs the modules in another process. A mutant is tried with the fastest tests that can notice it. Together, these tests take
    about `most_seconds`.
    """

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    keeps_database: bool = True
    in_process: bool = False
    most_seconds: float | None = None


_ENGINE = "tests/provisioning/engine"
AREAS = (
    Area(
        name="numbering",
        modules=("events.log.numbering",),
        tests=(
            "tests/events/test_numberer.py", "tests/events/test_numbering.py", "tests/events/test_timelines.py",
            "tests/events/test_hints.py",
        ),
    ),
    Area(
        name="log",
        modules=("events.log.reading",),
        tests=("tests/events/test_log.py", "tests/events/stream/test_lost_future.py", "tests/events/test_retention.py"),
    ),
    Area(
        name="recorder",
        modules=("events.record.recorder",),
        tests=(
            "tests/events/test_recorder.py", "tests/events/test_event_types.py", "tests/events/test_tripwire.py",
            "tests/events/test_numbering.py",
        ),
        keeps_database=False,
    ),
    Area(
        name="tripwire",
        modules=("events.record.tripwire",),
        tests=("tests/events/test_tripwire.py", "tests/events/test_figures.py", "tests/events/test_recorder.py"),
        keeps_database=False,
    ),
    Area(
        name="lanes",
        modules=("provisioning.engine.lanes", "provisioning.engine.lane_rows"),
        tests=(
            f"{_ENGINE}/test_lanes.py", f"{_ENGINE}/test_lane_races.py", f"{_ENGINE}/test_redelivery.py", f"{_ENGINE}/test_breaker.py",
            f"{_ENGINE}/test_sweeper.py", f"{_ENGINE}/test_log_follower.py", f"{_ENGINE}/test_claim_ahead.py",
        ),
    ),
    Area(
        name="redelivery",
        modules=(
            "provisioning.dead_letters.redelivery", "provisioning.dead_letters.redelivery_jobs", "provisioning.dead_letters.selections",
        ),
        tests=(f"{_ENGINE}/test_redelivery.py", f"{_ENGINE}/test_redelivery_jobs.py", f"{_ENGINE}/test_current_profile.py"),
    ),
    Area(
        name="links",
        modules=(
            "provisioning.links.rows", "provisioning.links.name_holders", "provisioning.links.overlaps",
            "provisioning.links.shared_servers",
        ),
        tests=(
            f"{_ENGINE}/test_account_links.py", "tests/provisioning/trials/test_name_holders.py",
            "tests/provisioning/synchronization/test_synchronization.py", "tests/provisioning/actions/test_action_services.py",
            "tests/provisioning/api/test_stream_holds.py", "tests/provisioning/admin/test_stream_page.py",
        ),
    ),
    Area(
        name="authorize",
        modules=("authapi.protocols.oauth.checks", "authapi.protocols.oauth.authorization_request", "authapi.protocols.oauth.parameters"),
        tests=(
            "tests/authapi/protocols/oauth/test_parameters.py", "tests/authapi/protocols/oauth/test_authorize.py",
            "tests/authapi/protocols/oauth/test_request_objects.py", "tests/authapi/test_pushed_requests.py",
        ),
    ),
    Area(
        name="tokens",
        modules=("authapi.tokens.verifying", "authapi.tokens.claims", "authapi.tokens.minting", "authapi.tokens.token_state"),
        tests=(
            "tests/authapi/tokens/test_claims.py", "tests/authapi/tokens/test_tokens.py", "tests/authapi/tokens/test_token_state.py",
            "tests/authapi/test_forged_tokens.py", "tests/authapi/test_user_tokens.py", "tests/authapi/test_token.py",
        ),
    ),
    Area(
        name="refresh",
        modules=("authapi.tokens.refresh_tokens", "authapi.tokens.refresh_policy", "authapi.grants.refresh_token"),
        tests=("tests/authapi/tokens/test_refresh_policy.py", "tests/authapi/grants/test_refresh_token.py"),
    ),
)  # fmt: skip
