"""If a synchronization skips more users than its report can contain, the report lists only some of these users."""

from __future__ import annotations

from collections import Counter

import pytest

from identity.models import Tenant
from provisioning.actions.scope import OUTSIDE
from provisioning.models import SynchronizationRow
from provisioning.synchronization import service, state
from provisioning.synchronization.findings import Finding, Outcome
from tests.provisioning.synchronization.conftest import FAST, stream_to


def test_the_report_limits_users_outside_the_scope_so_that_other_skipped_users_fit(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "ROWS_KEPT", 3)
    stream = stream_to(tenant, "http://127.0.0.1:9")
    job = service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=FAST, actor="a test")
    outside = [Finding(Outcome.SKIPPED, f"database|{number}", reason=OUTSIDE) for number in range(10)]
    others = [Finding(Outcome.SKIPPED, f"database|x{number}", reason="missing userName") for number in range(5)]

    for part in (outside[:5], [*others[:2], *outside[5:]], others[2:]):
        state.save(job, part)

    named = Counter(SynchronizationRow.objects.filter(job=job).values_list("reason", flat=True))
    assert named == {OUTSIDE: 3, "missing userName": 3}
    assert state.outcomes_of(job) == {"skipped": 15}
