"""The factors of staff accounts: what is stored, codes that are accepted once, and changes that end the sessions of the account."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import IntegrityError, connection, transaction

from events.log.numbering import open_connection
from foundation.secrets import totp, vault
from identity.factors import staff_factors
from identity.factors.staff_factors import NewPasskey
from identity.models import AuditEntry, Staff, StaffFactor, StaffRecoveryCode, Tenant
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound
from tests.deadlines import eventually
from tests.factories.admin import new_staff
from tests.factories.staff_factors import add_app, code_now

PASSKEY = NewPasskey("Y3JlZGVudGlhbA", b"\xa5key", 7, ("internal",))


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


def take(staff: Staff, code: str) -> bool:
    """Use a code on a separate database connection, as another process does. Return whether the code was accepted."""
    try:
        return staff_factors.use_totp(staff, code, moment=time.time())
    finally:
        connection.close()


def test_no_app_is_enrolled_with_a_wrong_code(staff: Staff) -> None:
    secret = totp.new_secret()
    wrong = f"{(int(totp.code_of(secret, totp.step_at(time.time()))) + 1) % 10**6:06}"
    with pytest.raises(staff_factors.WrongCode):
        staff_factors.add_totp(staff_id=staff.pk, name="App", secret=secret, code=wrong, moment=time.time())

    assert not staff_factors.has_factors(staff)
    assert Staff.objects.get(pk=staff.pk).factors_version == 0


def test_the_code_that_enrolled_an_app_cannot_sign_in(staff: Staff) -> None:
    secret, code = totp.new_secret(), ""
    code = totp.code_of(secret, totp.step_at(time.time()))
    staff_factors.add_totp(staff_id=staff.pk, name="App", secret=secret, code=code, moment=time.time())

    assert not staff_factors.use_totp(staff, code, moment=time.time())


def test_only_one_of_many_concurrent_uses_of_an_app_code_is_accepted(staff: Staff) -> None:
    app = add_app(staff)
    code = code_now(app)
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda _: take(staff, code), range(8)))

    assert sorted(taken) == [False] * 7 + [True]


def test_a_code_of_another_account_is_not_accepted(staff: Staff, tenant: Tenant) -> None:
    add_app(staff)
    other = add_app(new_staff(tenant))

    assert not staff_factors.use_totp(staff, code_now(other), moment=time.time())


def test_the_secret_is_sealed_and_can_be_opened_only_in_its_own_row(staff: Staff) -> None:
    app = add_app(staff)
    other = add_app(new_staff(None))
    StaffFactor.objects.filter(pk=other.pk).update(sealed_secret=app.sealed_secret)
    other.refresh_from_db()

    assert app.secret() not in app.sealed_secret
    with pytest.raises(vault.SecretUnreadable):
        other.secret()


def test_the_first_factor_creates_ten_recovery_codes_and_no_column_contains_a_code(staff: Staff) -> None:
    secret = totp.new_secret()
    code = totp.code_of(secret, totp.step_at(time.time()))
    first = staff_factors.add_totp(staff_id=staff.pk, name="App", secret=secret, code=code, moment=time.time())
    second = staff_factors.add_passkey(staff_id=staff.pk, name="Key", passkey=PASSKEY)
    kept = " ".join(StaffRecoveryCode.objects.filter(staff=staff).values_list("digest", flat=True))
    noted = " ".join(str(entry.after) + str(entry.facts) + entry.act for entry in AuditEntry.objects.filter(tenant_id=staff.tenant_id))

    assert len(set(first.recovery_codes)) == 10
    assert second.recovery_codes == ()
    for plain in (*first.recovery_codes, *(code.replace("-", "") for code in first.recovery_codes), secret):
        assert plain not in kept
        assert plain not in noted


def test_a_recovery_code_is_accepted_once_in_any_spelling(staff: Staff) -> None:
    add_app(staff)
    _, codes = staff_factors.renew_recovery_codes(staff_id=staff.pk)

    assert staff_factors.use_recovery_code(staff, codes[0].lower().replace("-", " "))
    assert not staff_factors.use_recovery_code(staff, codes[0])
    assert staff_factors.use_recovery_code(staff, codes[1].replace("-", "").replace("O", "0").replace("I", "1").replace("B", "8"))
    assert staff_factors.recovery_codes_left(staff) == 8


def test_only_one_of_many_concurrent_uses_of_a_recovery_code_is_accepted(staff: Staff) -> None:
    add_app(staff)
    _, codes = staff_factors.renew_recovery_codes(staff_id=staff.pk)
    together = Barrier(6)

    def take_code(_: int) -> bool:
        try:
            together.wait(10)
            return staff_factors.use_recovery_code(staff, codes[-1])
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        taken = list(threads.map(take_code, range(6)))

    assert sorted(taken) == [False] * 5 + [True]
    assert staff_factors.recovery_codes_left(staff) == 9


def test_a_concurrent_second_use_of_a_recovery_code_is_refused(staff: Staff) -> None:
    add_app(staff)
    _, codes = staff_factors.renew_recovery_codes(staff_id=staff.pk)

    def use_again() -> bool:
        try:
            return staff_factors.use_recovery_code(staff, codes[0])
        finally:
            connection.close()

    def is_waiting() -> bool:
        with open_connection() as other:
            waiting = "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()"
            return other.execute(waiting).fetchone() is not None

    with ThreadPoolExecutor() as threads:
        with transaction.atomic():
            assert staff_factors.use_recovery_code(staff, codes[0])
            second = threads.submit(use_again)
            eventually(is_waiting)
        assert second.result() is False


def test_new_recovery_codes_invalidate_the_old_codes(staff: Staff) -> None:
    add_app(staff)
    _, old = staff_factors.renew_recovery_codes(staff_id=staff.pk)
    staff_factors.renew_recovery_codes(staff_id=staff.pk)

    assert not staff_factors.use_recovery_code(staff, old[3])
    assert staff_factors.recovery_codes_left(staff) == 10


def test_recovery_codes_require_a_factor_and_are_deleted_with_the_last_factor(staff: Staff) -> None:
    with pytest.raises(Conflict):
        staff_factors.renew_recovery_codes(staff_id=staff.pk)
    app = add_app(staff)
    staff_factors.remove_factor(staff_id=staff.pk, factor_id=app.pk)

    assert not StaffRecoveryCode.objects.filter(staff=staff).exists()


def test_a_factor_of_another_account_cannot_be_renamed_or_removed(staff: Staff, tenant: Tenant) -> None:
    other = add_app(new_staff(tenant))
    with pytest.raises(NotFound):
        staff_factors.rename_factor(staff_id=staff.pk, factor_id=other.pk, name="Mine")
    with pytest.raises(NotFound):
        staff_factors.remove_factor(staff_id=staff.pk, factor_id=other.pk)

    assert StaffFactor.objects.get(pk=other.pk).name == other.name


def test_a_passkey_can_be_enrolled_for_only_one_account(staff: Staff) -> None:
    passkey = NewPasskey(f"credential-{staff.pk}", b"key", 0)
    staff_factors.add_passkey(staff_id=staff.pk, name="Key", passkey=passkey)
    with pytest.raises(AlreadyExists):
        staff_factors.add_passkey(staff_id=new_staff(None).pk, name="Key", passkey=passkey)


def test_each_value_of_the_counter_of_a_passkey_is_accepted_once(staff: Staff) -> None:
    passkey = NewPasskey(f"counted-{staff.pk}", b"key", 7)
    factor = staff_factors.add_passkey(staff_id=staff.pk, name="Key", passkey=passkey).factor

    assert staff_factors.use_passkey(factor, sign_count=8)
    assert not staff_factors.use_passkey(factor, sign_count=8)


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "app"])
def test_an_empty_too_long_or_used_name_of_a_factor_is_refused(staff: Staff, name: str) -> None:
    add_app(staff, "App")
    with pytest.raises(Invalid):
        staff_factors.add_passkey(staff_id=staff.pk, name=name, passkey=NewPasskey(f"named-{staff.pk}", b"key", 0))


def test_every_change_of_the_factors_except_a_new_name_ends_the_sessions_of_the_account(staff: Staff) -> None:
    def known() -> str:
        return Staff.objects.get(pk=staff.pk).get_session_auth_hash()

    seen = [known()]
    app = add_app(staff)
    seen.append(known())
    staff_factors.rename_factor(staff_id=staff.pk, factor_id=app.pk, name="Phone")
    assert known() == seen[-1]
    staff_factors.renew_recovery_codes(staff_id=staff.pk)
    seen.append(known())
    staff_factors.remove_factor(staff_id=staff.pk, factor_id=app.pk)
    seen.append(known())

    assert len(set(seen)) == len(seen)


def test_changes_of_factors_are_in_the_audit_log(staff: Staff) -> None:
    app = add_app(staff)
    staff_factors.rename_factor(staff_id=staff.pk, factor_id=app.pk, name="Phone")
    _, codes = staff_factors.renew_recovery_codes(staff_id=staff.pk)
    staff_factors.use_recovery_code(staff, codes[0])
    staff_factors.remove_factor(staff_id=staff.pk, factor_id=app.pk)
    noted = AuditEntry.objects.filter(tenant_id=staff.tenant_id, object_id=str(staff.pk), kind="act").order_by("pk")

    assert [entry.act for entry in noted] == [
        "Added a second factor",
        "Renamed a second factor",
        "Made new recovery codes",
        "Used a recovery code",
        "Removed a second factor",
    ]


def test_the_database_refuses_a_factor_without_the_columns_of_its_kind(staff: Staff) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        StaffFactor.objects.create(staff=staff, kind="totp", name="nothing in it")
    with pytest.raises(IntegrityError), transaction.atomic():
        StaffFactor.objects.create(staff=staff, kind="passkey", name="no key", credential_id=f"none-{staff.pk}")
