"""The steps of a move: when a step is refused, how an interrupted step continues, and how a step is undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from events.models import Head, LogEntry
from identity.models import AuditEntry, CustomDomain, FormerTenant, Staff, Tenant, TenantMove, User
from identity.moving import archive as archives
from identity.moving import exporting, importing, leaving, rows, stopping
from identity.moving.archive import Archive, open_archive
from identity.moving.facts import refusals
from identity.moving.failures import BadArchive, MoveRefused
from identity.moving.journey import Journey, new_key
from identity.services.failures import NotFound
from identity.services.tenants import create_tenant
from identity.services.users import update_user
from tests.factories.admin import new_staff
from tests.factories.identity import make_connection, make_user
from tests.identity.moving.installations import Target, exported, quiet, stopped
from tests.identity.test_tenant_deletion import rows_that_name


class Killed(BaseException):
    """An exception that ends a step as abruptly as a signal."""


def killed_after(count: int) -> Callable[[str, int], None]:
    """Return a progress function that ends the step when `count` parts are done."""
    left = [count]

    def progress(_table: str, _rows: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    return progress


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "PART_ROWS", 2)


@pytest.fixture
def populated(tenant: Tenant) -> Tenant:
    people = make_connection(tenant_id=tenant.pk)
    for number in range(5):
        make_user(connection=people, email=f"u{number}@{tenant.pk}.test", password="Correct-Horse-7-Battery")
    new_staff(tenant)
    return tenant


def nothing_of(tenant: Tenant) -> bool:
    return rows_that_name(tenant.pk) == {}


def moved(tenant: Tenant, target: Target, directory: Path) -> Archive:
    """Move a tenant to the target, and open it there."""
    archive = exported(tenant, directory)
    with target.here():
        importing.import_tenant(archive, progress=quiet)
    receipt = leaving.hand_over(archive)
    with target.here():
        importing.open_tenant(tenant_id=tenant.pk, receipt=receipt)
    return archive


# --- The export -------------------------------------------------------------------------------------------------------


def test_a_tenant_that_is_not_stopped_is_not_exported(populated: Tenant, tmp_path: Path) -> None:
    with pytest.raises(MoveRefused, match=r"is active\. Stop it first"):
        exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=new_key(), progress=quiet)
    stopping.stop_tenant(tenant_id=populated.pk)
    with pytest.raises(MoveRefused, match="events have no position"):
        exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=new_key(), progress=quiet)
    with pytest.raises(NotFound):
        exporting.export_tenant(tenant_id="absent", directory=tmp_path / "a", key=new_key(), progress=quiet)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_killed_export_continues_after_the_last_part_that_it_wrote(populated: Tenant, target: Target, tmp_path: Path, count: int) -> None:
    stopped(populated)
    key = new_key()
    with pytest.raises(Killed):
        exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=key, progress=killed_after(count))
    with pytest.raises(BadArchive, match="is incomplete"):
        open_archive(tmp_path / "a", key=key)
    # After a crash, the last line of this file can be incomplete.
    with (tmp_path / "a" / "progress.jsonl").open("a") as file:
        file.write('{"number": 99')
    with pytest.raises(BadArchive, match="does not belong to this archive"):
        exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=new_key(), progress=quiet)

    done = exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=key, progress=quiet)

    again = exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=key, progress=quiet)
    assert again == done
    with target.here():
        importing.import_tenant(open_archive(tmp_path / "a", key=key), progress=quiet)
        assert User.objects.of(populated.pk).count() == 5


def test_a_change_during_the_export_prevents_its_completion(populated: Tenant, tmp_path: Path) -> None:
    stopped(populated)
    user = User.objects.of(populated.pk).first()
    assert user is not None

    def change(table: str, _rows: int) -> None:
        if table == "identity_user":
            update_user(tenant_id=populated.pk, user_id=user.user_id, changes={"nickname": "changed"})

    with pytest.raises(MoveRefused, match=r"Rows of .*identity_user.* changed during the export"):
        exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=new_key(), progress=change)
    assert not archives.is_complete(tmp_path / "a")


def test_an_export_is_refused_if_the_tenant_was_started_after_the_export_began(populated: Tenant, tmp_path: Path) -> None:
    stopped(populated)
    key = new_key()
    with pytest.raises(Killed):
        exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=key, progress=killed_after(2))
    stopping.start_tenant(tenant_id=populated.pk)
    stopped(populated)
    with pytest.raises(MoveRefused, match="begun before the tenant ran again"):
        exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=key, progress=quiet)
    with pytest.raises(BadArchive, match="is not empty"):
        archives.begin(tmp_path / "a", archive_id="x", tenant_id=populated.pk, journey=Journey(key, "x"), stop="", before={})

    exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "b", key=key, progress=quiet)
    old = open_archive(tmp_path / "b", key=key)
    stopping.start_tenant(tenant_id=populated.pk)
    stopped(populated)
    with pytest.raises(MoveRefused, match="from an earlier stop"):
        exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "b", key=key, progress=quiet)
    with pytest.raises(MoveRefused, match="has run since"):
        leaving.hand_over(old)


def test_the_journey_key_cannot_be_stored_inside_the_archive(populated: Tenant, tmp_path: Path) -> None:
    with pytest.raises(BadArchive, match="outside the archive"):
        archives.read_or_make_key(tmp_path / "a" / "key", archive=tmp_path / "a")
    key, is_new = archives.read_or_make_key(tmp_path / "key", archive=tmp_path / "a")
    assert is_new
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert archives.read_or_make_key(tmp_path / "key", archive=tmp_path / "a") == (key, False)


def test_the_error_names_a_path_that_cannot_be_written(populated: Tenant, tmp_path: Path) -> None:
    stopped(populated)
    (tmp_path / "file").touch()
    place, key, within = str(tmp_path / "a"), str(tmp_path / "key"), str(tmp_path / "file" / "x")
    with pytest.raises(CommandError, match=r"cannot be read or written: .*file/x"):
        call_command("tenants", "export", populated.pk, "--to", place, "--journey-key", within)
    with pytest.raises(CommandError, match=r"cannot be read or written: .*file/x"):
        call_command("tenants", "export", populated.pk, "--to", within, "--journey-key", key)
    call_command("tenants", "export", populated.pk, "--to", place, "--journey-key", key)
    assert archives.is_complete(tmp_path / "a")


def test_an_export_that_was_killed_while_it_wrote_its_first_line_begins_again(populated: Tenant, tmp_path: Path) -> None:
    stopped(populated)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "progress.jsonl.new").write_text('{"archive": "cut o')
    exporting.export_tenant(tenant_id=populated.pk, directory=tmp_path / "a", key=new_key(), progress=quiet)
    assert archives.is_complete(tmp_path / "a")


def test_the_files_of_an_archive_contain_no_readable_data_of_the_tenant(populated: Tenant, tmp_path: Path) -> None:
    exported(populated, tmp_path / "archive")
    content = b"".join(path.read_bytes() for path in (tmp_path / "archive").rglob("*") if path.is_file())
    assert f"@{populated.pk}.test".encode() not in content
    assert b"argon2" not in content
    assert f"{populated.pk}.example.test".encode() not in content


# --- The archive ------------------------------------------------------------------------------------------------------


def test_the_error_distinguishes_another_key_from_changed_bytes(populated: Tenant, target: Target, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")
    key = (tmp_path / "archive.key").read_text()
    with pytest.raises(BadArchive, match="does not belong to this archive"):
        open_archive(tmp_path / "archive", key=new_key())
    with pytest.raises(BadArchive, match="at least 43 ASCII characters"):
        open_archive(tmp_path / "archive", key="short")

    part = tmp_path / "archive" / "parts" / archive.parts[3].name
    sealed = bytearray(part.read_bytes())
    sealed[40] ^= 1
    part.write_bytes(sealed)
    with target.here():
        with pytest.raises(BadArchive, match="its digest differs"):
            importing.import_tenant(archive, progress=quiet)
        assert nothing_of(populated)
    sealed[40] ^= 1
    part.write_bytes(sealed)

    manifest = tmp_path / "archive" / "manifest.json"
    shown = json.loads(manifest.read_text())
    shown["parts"][0]["rows"] += 1
    manifest.write_text(json.dumps(shown))
    with pytest.raises(BadArchive, match="The manifest has changed"):
        open_archive(tmp_path / "archive", key=key)
    shown["format"] = 9
    manifest.write_text(json.dumps(shown))
    with pytest.raises(BadArchive, match="has the format 9"):
        open_archive(tmp_path / "archive", key=key)
    manifest.write_text("{")
    with pytest.raises(BadArchive, match="does not contain an archive"):
        open_archive(tmp_path / "archive", key=key)


def test_a_part_in_the_place_of_another_part_is_refused(populated: Tenant, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")
    one, other = archive.parts[0], archive.parts[1]
    place = tmp_path / "archive" / "parts"
    (place / one.name).write_bytes((place / other.name).read_bytes())
    with pytest.raises(BadArchive, match="its digest differs"):
        archive.contents(one)
    with pytest.raises(BadArchive, match="belongs to another archive"):
        archive.contents(replace(one, sha256=other.sha256))
    (place / one.name).unlink()
    with pytest.raises(BadArchive, match="cannot be read"):
        list(archive.check_parts())


# --- Refused imports --------------------------------------------------------------------------------------------------


def refused(archive: Archive, match: str) -> None:
    with pytest.raises(MoveRefused, match=match):
        importing.import_tenant(archive, progress=quiet)
    assert not TenantMove.objects.filter(pk=archive.tenant_id).exists()


def test_the_error_names_migrations_that_only_one_installation_has(populated: Tenant, target: Target, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")
    with target.here():
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_migrations SET name = 'later' WHERE app = 'events' AND name = '0003_tally'")
        refused(archive, r"The source has migrations that are not applied here: events.0003_tally.* does not have: events.later")
        assert nothing_of(populated)


def test_the_error_names_missing_and_different_keys(populated: Tenant, target: Target, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")
    own = {name: {f"b{name[0]}": "x" * 40} for name in ("SESSION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS")}
    with target.here(**own):
        refused(archive, "SESSION_KEYS lacks the keys t1 .* DIGEST_KEYS lacks the keys t1 .* CURSOR_KEYS lacks the keys t1 ")
    with target.here(CURSOR_KEYS={"t1": "another key under the same id, 0123456789"}):
        refused(archive, "CURSOR_KEYS has other keys under the ids t1 than the source")


@pytest.mark.parametrize("name", ["EVENT_ATTRIBUTE_PREFIX", "EVENT_SOURCE_NAMESPACE", "DATABASE_STRATEGY"])
def test_settings_whose_values_consumers_see_must_be_equal_in_both_installations(
    populated: Tenant, target: Target, tmp_path: Path, name: str
) -> None:
    archive = exported(populated, tmp_path / "archive")
    with target.here(**{name: "other"}):
        refused(archive, f"{name} is .* at the source and 'other' here")


def test_an_import_whose_host_or_id_is_in_use_is_refused_before_its_first_write(populated: Tenant, target: Target, tmp_path: Path) -> None:
    email = Staff.objects.filter(tenant=populated).values_list("email", flat=True)[0]
    archive = exported(populated, tmp_path / "archive")
    with target.here():
        create_tenant(tenant_id="another-one", name="Another", host=f"{populated.pk}.example.test")
        Staff.objects.create(email=email, password="!")
        refused(archive, f"The host {populated.pk}.example.test belongs to the tenant another-one here. A staff account with the email")
        assert not Tenant.objects.filter(pk=populated.pk).exists()
        CustomDomain.objects.of("another-one").delete()
        Staff.objects.filter(email=email).delete()
        FormerTenant.objects.create(pk=populated.pk)
        refused(archive, f"A tenant with the id {populated.pk} was deleted here")
        FormerTenant.objects.filter(pk=populated.pk).delete()
        create_tenant(tenant_id=populated.pk, name="The same", host="the-same.example.test")
        refused(archive, f"A tenant with the id {populated.pk} exists here")
        with pytest.raises(MoveRefused, match="exists here"):
            importing.begin(archive)
        assert Tenant.objects.get(pk=populated.pk).status == "active"


# --- The import -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 9])
def test_a_killed_import_continues_after_the_last_part_that_it_read(populated: Tenant, target: Target, tmp_path: Path, count: int) -> None:
    archive = exported(populated, tmp_path / "archive")
    with target.here():
        with pytest.raises(Killed):
            importing.import_tenant(archive, progress=killed_after(count))
        assert TenantMove.objects.get(pk=populated.pk).parts_done == count + 1
        with pytest.raises(MoveRefused, match="The import is not complete"):
            importing.open_tenant(tenant_id=populated.pk, receipt=archive.journey.receipt)
        importing.import_tenant(archive, progress=quiet)
        assert TenantMove.objects.get(pk=populated.pk).is_verified


def test_the_removal_of_an_interrupted_import_leaves_no_row(populated: Tenant, target: Target, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")
    with target.here():
        with pytest.raises(Killed):
            importing.import_tenant(archive, progress=killed_after(len(archive.parts) - 2))
        with pytest.raises(Killed):
            leaving.remove_tenant(tenant_id=populated.pk, progress=lambda count: killed_after(0)("", count))
        refused_parts = TenantMove.objects.filter(pk=populated.pk, archive_id=archive.archive_id)
        assert not refused_parts.exists()
        leaving.remove_tenant(tenant_id=populated.pk, progress=quiet)
        assert nothing_of(populated)
        assert not AuditEntry.objects.filter(tenant_id=populated.pk).exists()
        # The same archive can be imported again.
        importing.import_tenant(archive, progress=quiet)
        assert User.objects.of(populated.pk).count() == 5


def test_the_import_finds_rows_that_differ_from_the_source(populated: Tenant, target: Target, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")

    def change(table: str, _rows: int) -> None:
        if table == "identity_passwordcredential":
            with connection.cursor() as cursor:
                cursor.execute("UPDATE identity_passwordcredential SET password_hash = 'another' WHERE true")

    with target.here():
        with pytest.raises(BadArchive, match="rows of identity_passwordcredential differ"):
            importing.import_tenant(archive, progress=change)
        with pytest.raises(MoveRefused, match="not complete"):
            importing.open_tenant(tenant_id=populated.pk, receipt=archive.journey.receipt)


def test_rows_of_other_tenants_keep_their_keys_and_contents(populated: Tenant, target: Target, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")
    with target.here():
        create_tenant(tenant_id="local-one", name="Local", host="local-one.example.test")
        first = make_user(connection=make_connection(tenant_id="local-one"), email="first@local.test")
        importing.import_tenant(archive, progress=quiet)
        second = make_user(connection=first.connection, email="second@local.test")
        imported = set(User.objects.of(populated.pk).values_list("pk", flat=True))
        assert first.pk not in imported
        assert second.pk not in imported
        assert list(User.objects.of("local-one").order_by("pk")) == [first, second]


def test_the_log_keeps_its_epoch_and_its_positions_and_order(populated: Tenant, target: Target, tmp_path: Path) -> None:
    def log() -> list[tuple[object, ...]]:
        entries = LogEntry.objects.filter(tenant_id=populated.pk).select_related("event").order_by("position")
        assert [entry.pk for entry in entries] == sorted(entry.pk for entry in entries)
        return [(entry.position, entry.recorded_at, entry.event.event_id, bytes(entry.event.body)) for entry in entries]

    Head.objects.filter(pk=populated.pk).update(epoch=41, timeline=7)
    archive = exported(populated, tmp_path / "archive")
    before, head = log(), Head.objects.get(pk=populated.pk)
    with target.here():
        importing.import_tenant(archive, progress=quiet)
        here = Head.objects.get(pk=populated.pk)
        assert log() == before
        assert (here.epoch, here.position, here.stream_id, here.timeline) == (41, head.position, head.stream_id, None)


# --- The switch -------------------------------------------------------------------------------------------------------


def test_only_the_receipt_of_the_source_opens_the_tenant(populated: Tenant, target: Target, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")
    with target.here():
        importing.import_tenant(archive, progress=quiet)
        for wrong in ("", "0" * 20, archive.journey.check[:20]):
            with pytest.raises(MoveRefused, match="not the receipt"):
                importing.open_tenant(tenant_id=populated.pk, receipt=wrong)
    receipt = leaving.hand_over(archive)
    assert leaving.hand_over(archive) == receipt
    assert Tenant.objects.get(pk=populated.pk).status == "moved"
    with target.here():
        assert importing.open_tenant(tenant_id=populated.pk, receipt=receipt.upper()) == "active"
        with pytest.raises(MoveRefused, match="only an imported tenant can be opened"):
            importing.open_tenant(tenant_id=populated.pk, receipt=receipt)
        with pytest.raises(MoveRefused, match="can be removed"):
            leaving.remove_tenant(tenant_id=populated.pk, progress=quiet)
        assert AuditEntry.objects.filter(tenant_id=populated.pk, act="Opened the tenant after its move").exists()


def test_a_tenant_that_is_not_stopped_here_cannot_be_handed_over(populated: Tenant, target: Target, tmp_path: Path) -> None:
    archive = exported(populated, tmp_path / "archive")
    with target.here():
        importing.import_tenant(archive, progress=quiet)
        with pytest.raises(MoveRefused, match="is arriving"):
            leaving.hand_over(archive)
    stopping.start_tenant(tenant_id=populated.pk)
    with pytest.raises(MoveRefused, match="is active"):
        leaving.hand_over(archive)


def test_a_moved_tenant_is_removed_at_the_source_and_can_come_back(populated: Tenant, target: Target, tmp_path: Path) -> None:
    moved(populated, target, tmp_path / "there")
    entries = AuditEntry.objects.filter(tenant_id=populated.pk).count()
    leaving.remove_tenant(tenant_id=populated.pk, progress=quiet)
    assert set(rows_that_name(populated.pk)) <= {"identity_auditentry"}
    assert AuditEntry.objects.filter(tenant_id=populated.pk).count() > entries

    with target.here():
        back = exported(populated, tmp_path / "back")
        keys = set(User.objects.of(populated.pk).values_list("first_key", flat=True))
    # The target of the first move is the source of the move back. It has its own key in each list, and the first source lacks this key.
    others = {name: {key: value for key, value in target.keys[name].items() if key != "t1"} for name in ("SESSION_KEYS", "CURSOR_KEYS")}
    told = " ".join(refusals(back))
    assert all(f"{name} lacks the keys {next(iter(added))}" in told for name, added in others.items())
    with target.here():
        leaving.hand_over(back)
    assert all(keys)


def test_the_commands_move_a_tenant_and_print_the_next_step(
    populated: Tenant, target: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(populated)
    archive, key = str(tmp_path / "a"), str(tmp_path / "key")
    call_command("tenants", "status")
    call_command("tenants", "export", populated.pk, "--to", archive, "--journey-key", key)
    with target.here():
        call_command("tenants", "import", archive, "--journey-key", key, "--check")
        assert nothing_of(populated)
        call_command("tenants", "import", archive, "--journey-key", key)
        call_command("tenants", "status")
    call_command("tenants", "hand-over", archive, "--journey-key", key, "--yes")
    receipt = capsys.readouterr().out.partition("--receipt ")[2].strip()
    with target.here():
        with pytest.raises(CommandError, match="not the receipt"):
            call_command("tenants", "open", populated.pk, "--receipt", "wrong", "--yes")
        call_command("tenants", "open", populated.pk, "--receipt", receipt, "--yes")
    call_command("tenants", "status")
    call_command("tenants", "remove", populated.pk, "--yes")
    with pytest.raises(CommandError, match="There is no tenant"):
        call_command("tenants", "remove", populated.pk, "--yes")
    shown = capsys.readouterr().out
    assert f"{populated.pk} is active." in shown
    assert f"{populated.pk}  moved  Handed over. Next: open at the target, then remove here." in shown
