"""Login with a password: which attempts succeed, which are refused, and what the sign-in log records."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from authapi.accounts.attempts import Refusal
from authapi.accounts.user_lookup import failure_key, named_user
from authapi.models import Client, SignIn
from events.models import Event, Mark
from identity.imports.imported_passwords import stored_form
from identity.models import Connection, PasswordCredential, Tenant, User
from identity.services.users import block_user
from tests.authapi.accounts.logging_in import WRONG, attempt, last_line, outcome, protect, suspect
from tests.factories.sign_in import people, person

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)


def types(user: User) -> dict[str, int]:
    return dict(Counter(SignIn.objects.of(user.tenant_id).values_list("type", flat=True)))


def test_a_wrong_password_is_refused_and_logged_without_the_password(ada: User, client: Client, connection: Connection) -> None:
    assert outcome(attempt(connection, password=WRONG, client=client)) is Refusal.WRONG_CREDENTIALS
    line = last_line(ada.tenant_id)
    assert (line.type, line.is_success, line.description) == ("fp", False, "Wrong password.")
    assert (line.user_id, line.client_id, line.connection) == (ada.user_id, client.client_id, "people")
    assert (line.ip, line.user_agent) == ("192.0.2.7", "Test/1.0")
    assert WRONG not in str(SignIn.objects.of(ada.tenant_id).values())
    assert User.objects.of(ada.tenant_id).get(pk=ada.pk).logins_count == 0


@pytest.mark.parametrize("name", ["nobody@example.test", "", " ", "x" * 300, "a\x00b", "%", "' OR 1=1 --", "ada@example.test\udcff"])
def test_an_unknown_name_is_refused_like_a_wrong_password(ada: User, connection: Connection, name: str) -> None:
    assert outcome(attempt(connection, name)) is Refusal.WRONG_CREDENTIALS
    line = last_line(ada.tenant_id)
    assert (line.type, line.user_id) == ("fu", "")


def test_a_user_without_a_password_cannot_log_in(ada: User, connection: Connection) -> None:
    PasswordCredential.objects.filter(user=ada).delete()
    assert outcome(attempt(connection)) is Refusal.WRONG_CREDENTIALS


def test_a_user_of_another_connection_is_not_found(ada: User, tenant: Tenant, client: Client) -> None:
    other = people(tenant, client, name="others")
    assert outcome(attempt(other)) is Refusal.WRONG_CREDENTIALS
    person(other, password="Another-Password-1")
    assert outcome(attempt(other)) is Refusal.WRONG_CREDENTIALS
    assert isinstance(outcome(attempt(other, password="Another-Password-1")), User)


def test_only_the_right_password_reveals_that_a_user_is_blocked(ada: User, connection: Connection) -> None:
    block_user(tenant_id=ada.tenant_id, user_id=ada.user_id)
    assert outcome(attempt(connection, password=WRONG)) is Refusal.WRONG_CREDENTIALS
    assert outcome(attempt(connection)) is Refusal.USER_BLOCKED
    assert last_line(ada.tenant_id).description == "The user is blocked by an administrator."
    assert User.objects.of(ada.tenant_id).get(pk=ada.pk).last_login is None


@pytest.mark.parametrize(
    "name", ["ada@example.test", "ADA@Example.Test", "  ada@example.test ", "Countess", "cOUNTESS", "+15550100", "+1 (555) 01-00"]
)
def test_a_user_is_found_by_each_identifier_in_any_case(connection: Connection, name: str) -> None:
    ada = person(connection, username="countess", phone_number="+15550100")
    assert outcome(attempt(connection, name)) == ada


def test_a_login_prefers_a_matching_email_address_over_a_matching_username(connection: Connection) -> None:
    person(connection, email="grace@example.test", username="ada@example.test", password="Another-Password-1")
    ada = person(connection)
    assert named_user(connection, "Ada@example.test") == ada
    assert outcome(attempt(connection)) == ada
    assert outcome(attempt(connection, password="Another-Password-1")) is Refusal.WRONG_CREDENTIALS


def test_a_user_among_many_is_found_through_the_unique_indexes(ada: User, connection: Connection) -> None:
    many = (User(tenant_id=ada.tenant_id, connection=connection, user_id=f"database|{n}", email=f"u{n}@example.test") for n in range(2000))
    User.objects.of(ada.tenant_id).bulk_create(many)
    with CaptureQueriesContext(database) as queries:
        assert named_user(connection, "ada@example.test") == ada
    with database.cursor() as cursor:
        cursor.execute("ANALYZE identity_user")
        cursor.execute(f"EXPLAIN {queries[0]['sql']}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert len(queries) == 1
    for index in ("email", "username"):
        assert f"identity_user_{index}_unique" in plan
    # PostgreSQL can choose either of the two indexes of phone numbers.
    assert "identity_user_phone_number_unique" in plan or "identity_user_by_phone" in plan


def test_spellings_of_one_name_share_a_count_of_failures(connection: Connection) -> None:
    ada = person(connection, phone_number="+15550100", username="countess")
    assert {failure_key(ada, name) for name in ("ADA@example.test", " ada@example.test")} == {"ada@example.test"}
    assert failure_key(ada, "+1 555 0100") == "+15550100"
    assert failure_key(None, " Nobody@Example.Test ") == "nobody@example.test"


def test_a_login_updates_the_user_without_recording_an_event(ada: User, client: Client, connection: Connection) -> None:
    before = User.objects.of(ada.tenant_id).get(pk=ada.pk)
    events = Event.objects.filter(tenant_id=ada.tenant_id).count()
    for _ in range(2):
        assert outcome(attempt(connection, client=client)) == ada
    after = User.objects.of(ada.tenant_id).get(pk=ada.pk)
    assert (after.logins_count, after.last_ip) == (2, "192.0.2.7")
    assert after.last_login is not None
    assert after.updated_at == before.updated_at
    assert Event.objects.filter(tenant_id=ada.tenant_id).count() == events
    assert not Mark.objects.filter(tenant_id=ada.tenant_id).exists()
    line = last_line(ada.tenant_id)
    assert (line.type, line.is_success, line.user_id, line.client_name) == ("s", True, ada.user_id, "Web shop")


def test_an_imported_hash_is_replaced_at_the_first_login_with_the_right_password(ada: User, connection: Connection) -> None:
    sha1 = {"algorithm": "sha1", "hash": {"value": "a9993e364706816aba3e25717850c26c9cd0d89d", "encoding": "hex"}}
    stored = stored_form(sha1)
    PasswordCredential.objects.filter(user=ada).update(password_hash=stored)
    assert outcome(attempt(connection, password=WRONG)) is Refusal.WRONG_CREDENTIALS
    assert PasswordCredential.objects.get(user=ada).password_hash == stored
    assert outcome(attempt(connection, password="abc")) == ada
    assert not PasswordCredential.objects.get(user=ada).password_hash.startswith("imported$")
    assert outcome(attempt(connection, password="abc")) == ada


def test_logins_over_the_limit_of_an_ip_address_are_refused_before_hashing(ada: User, connection: Connection) -> None:
    with time_machine.travel(BEGIN, tick=False) as clock:
        assert [outcome(attempt(connection)) for _ in range(20)] == [ada] * 20
        assert outcome(attempt(connection)) is Refusal.TOO_MANY_LOGINS
        assert outcome(attempt(connection, "ADA@example.test ")) is Refusal.TOO_MANY_LOGINS
        assert types(ada) == {"s": 20, "limit_sul": 2}
        assert outcome(attempt(connection, ip="192.0.2.8")) == ada
        assert outcome(attempt(connection, "grace@example.test")) is Refusal.WRONG_CREDENTIALS
        clock.shift(timedelta(seconds=6.1))
        assert [outcome(attempt(connection)) for _ in range(2)] == [ada, Refusal.TOO_MANY_LOGINS]


def test_an_ip_address_with_failures_at_many_accounts_is_refused_at_every_account(ada: User, connection: Connection) -> None:
    suspect(ada.tenant_id, stage={"pre-login": {"max_attempts": 3, "rate": 60_000}})
    with time_machine.travel(BEGIN, tick=False) as clock:
        for number in range(3):
            assert outcome(attempt(connection, f"nobody-{number}@example.test")) is Refusal.WRONG_CREDENTIALS
        assert outcome(attempt(connection)) is Refusal.SUSPICIOUS_ADDRESS
        assert types(ada) == {"fu": 3, "limit_mu": 1}
        assert outcome(attempt(connection, ip="192.0.2.8")) == ada
        clock.shift(timedelta(seconds=61))
        assert outcome(attempt(connection)) == ada


def test_an_ip_address_with_successful_logins_never_becomes_suspicious(ada: User, connection: Connection) -> None:
    suspect(ada.tenant_id, stage={"pre-login": {"max_attempts": 1, "rate": 60_000}})
    assert [outcome(attempt(connection)) for _ in range(3)] == [ada] * 3


@pytest.mark.parametrize("rules", [{"enabled": False}, {"shields": ["admin_notification"]}, {"allowlist": ["192.0.2.0/24"]}])
def test_ip_addresses_are_not_refused_if_blocking_is_off_or_the_address_is_allowed(
    ada: User, connection: Connection, rules: dict[str, object]
) -> None:
    protect(ada.tenant_id, enabled=False)
    suspect(ada.tenant_id, stage={"pre-login": {"max_attempts": 1, "rate": 60_000}}, **rules)
    for number in range(3):
        outcome(attempt(connection, f"nobody-{number}@example.test"))
    assert outcome(attempt(connection)) == ada
