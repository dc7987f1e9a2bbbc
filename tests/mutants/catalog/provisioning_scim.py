"""Mutants of `provisioning`: the SCIM client, links, masks and webhooks."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="provisioning-match-rival",
        at="provisioning.scim.matches:_by_key",
        old=" and not claims.is_rival(item)",
        new="",
        rule="The account of another user is never written, even if it has our key.",
        tests=(
            "tests/provisioning/scim/test_match_verification.py",
            "tests/provisioning/scim/test_strangers_are_safe.py",
        ),
    ),
    Mutant(
        name="provisioning-match-ambiguous",
        at="provisioning.scim.matches:_by_key",
        old="if len(keyed) > 1:",
        new="if False:",
        rule="Two accounts with one key are ambiguous, and none of them is written.",
        tests=("tests/provisioning/scim/test_match_verification.py",),
    ),
    Mutant(
        name="provisioning-match-foreign-key",
        at="provisioning.scim.matches:by_user_name",
        old='if holder.get("externalId") or claims.is_rival(holder):',
        new="if claims.is_rival(holder):",
        rule="An account with the key of another user is never adopted by its name.",
        tests=("tests/provisioning/scim/test_match_verification.py",),
    ),
    Mutant(
        name="provisioning-match-name-unproven",
        at="provisioning.scim.matches:by_user_name",
        old="if person.proves_name:",
        new="if True:",
        rule="An equal user name alone proves nothing.",
        tests=("tests/provisioning/scim/test_match_verification.py",),
    ),
    Mutant(
        name="provisioning-name-proof-verified",
        at="provisioning.scim.name_proof:proves_name",
        old="return is_trusted and is_verified and",
        new="return is_trusted and",
        rule="An unverified address proves no account.",
        tests=(
            "tests/provisioning/scim/test_match_verification.py",
            "tests/provisioning/scim/test_pure_parts.py",
        ),
    ),
    Mutant(
        name="provisioning-name-proof-trusted",
        at="provisioning.scim.name_proof:proves_name",
        old="return is_trusted and is_verified and",
        new="return is_verified and",
        rule="An address that an untrusted connection claims proves no account.",
        tests=(
            "tests/provisioning/scim/test_match_verification.py",
            "tests/provisioning/scim/test_pure_parts.py",
        ),
    ),
    Mutant(
        name="provisioning-adopt-unproven",
        at="provisioning.scim.user_sync:UserSync._adopt",
        old="if not person.proves_name:",
        new="if False:",
        rule="An account with our user name is adopted only if the name is proven.",
        tests=(
            "tests/provisioning/scim/test_match_verification.py",
            "tests/provisioning/scim/test_peculiar_servers.py",
        ),
    ),
    Mutant(
        name="provisioning-deletion-in-doubt",
        at="provisioning.scim.user_sync:UserSync.deleted",
        old="if links.is_in_doubt:\n                raise DeletionInDoubt",
        new="if False:\n                raise DeletionInDoubt",
        rule="A deletion after a create without a response is never skipped.",
        tests=(
            "tests/provisioning/scim/test_retries_and_budget.py",
            "tests/provisioning/scim/test_strangers_are_safe.py",
        ),
    ),
    Mutant(
        name="provisioning-filter-quoting",
        at="provisioning.scim.filters:equals",
        old="json.dumps(value, ensure_ascii=False)",
        new="chr(34) + value + chr(34)",
        rule="A value in a SCIM filter is quoted.",
        tests=("tests/provisioning/scim/test_pure_parts.py",),
    ),
    Mutant(
        name="provisioning-answer-id",
        at="provisioning.scim.responses:written_user",
        old="if _user_id(document, verb, status) != resource_id:",
        new="if False:",
        rule="The response to a write must contain the written user.",
        tests=(
            "tests/provisioning/scim/test_shapes_and_statuses.py",
            "tests/provisioning/scim/test_pure_parts.py",
        ),
    ),
    Mutant(
        name="provisioning-answer-list",
        at="provisioning.scim.responses:found_resources",
        old='_check_schemas(document, LIST_RESPONSE, "GET", status)',
        new="pass",
        rule="The response to a lookup must be a ListResponse.",
        tests=("tests/provisioning/scim/test_shapes_and_statuses.py",),
    ),
    Mutant(
        name="provisioning-masked-encodings",
        at="provisioning.runs.masking:_forms",
        old='return secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret, safe="")',
        new="return (secret,)",
        rule="A secret is masked in every encoding.",
        tests=(
            "tests/provisioning/scim/test_pure_parts.py",
            "tests/provisioning/actions/test_runner.py",
        ),
    ),
    Mutant(
        name="provisioning-masked-headers",
        at="provisioning.runs.masking:Mask.headers",
        old="MASK if name.lower() in _SECRET_HEADERS else self.text(value)",
        new="self.text(value)",
        rule="Headers that contain credentials are masked completely.",
        tests=(
            "tests/provisioning/scim/test_pure_parts.py",
            "tests/provisioning/actions/test_runner.py",
        ),
    ),
    Mutant(
        name="provisioning-scope-of-action",
        at="provisioning.actions.scope:is_in_scope",
        old="return value is True",
        new="return value is not False",
        rule="A user without the value of the scope is outside of it.",
        tests=("tests/provisioning/actions/test_scope.py",),
    ),
    Mutant(
        name="provisioning-scope-not-boolean",
        at="provisioning.actions.scope:is_in_scope",
        old="if value is not None and not isinstance(value, bool):",
        new="if False:",
        rule="A scope that is neither true nor false fails instead of excluding the user.",
        tests=("tests/provisioning/actions/test_scope.py",),
    ),
    Mutant(
        name="provisioning-link-older-event",
        at="provisioning.links.rows:UPSERT",
        old="AND (EXCLUDED.position >= l.position OR l.remote_id = '')",
        new="",
        rule="An older event never overwrites a newer account link.",
        tests=("tests/provisioning/engine/test_account_links.py",),
    ),
    Mutant(
        name="provisioning-link-lock",
        at="provisioning.links.rows:_LOCK",
        old=" WHERE k.until <= clock_timestamp()",
        new="",
        rule="Two streams that share a server never write one account at the same time.",
        tests=("tests/provisioning/engine/test_account_links.py",),
    ),
    Mutant(
        name="provisioning-webhook-key-length",
        at="provisioning.webhooks.signature:key_of",
        old=" or not SHORTEST_KEY_BYTES <= len(key) <= LONGEST_KEY_BYTES",
        new="",
        rule="A signing secret has at least 24 bytes.",
        tests=(
            "tests/provisioning/webhooks/test_signature.py",
            "tests/provisioning/webhooks/test_configuration.py",
        ),
    ),
)
