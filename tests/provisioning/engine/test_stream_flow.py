"""The success rate and the latencies of a stream in each hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from identity.models import Tenant
from provisioning.admin.outcomes.flow_charts import percent
from provisioning.engine.stream_flow import HOUR, Flow, flow_by_hour, hour_starts
from provisioning.models import Delivery

STREAM = "est_flow0000000000000000000"[:26]


def deliver(tenant: Tenant, number: int, state: str, *, at: datetime, seconds: float, stream: str = STREAM) -> None:
    row = Delivery.objects.create(
        stream_id=stream, tenant_id=tenant.pk, key=f"user:{number}", position=number, event=number + 10**9, event_id=f"evt_{number}",
        event_type="user.created", state=state, settled_at=None if state == "todo" else at + timedelta(seconds=seconds),
    )  # fmt: skip
    Delivery.objects.filter(pk=row.pk).update(created_at=at)


def test_each_hour_has_its_success_rate_and_its_latencies(tenant: Tenant) -> None:
    starts = hour_starts(datetime.now(UTC))
    for number in range(3):
        deliver(tenant, number, "delivered", at=starts[-2] + timedelta(minutes=number), seconds=2)
    deliver(tenant, 3, "dead", at=starts[-2], seconds=900)
    deliver(tenant, 4, "todo", at=starts[-1], seconds=0)
    deliver(tenant, 5, "delivered", at=starts[0] - HOUR, seconds=5)
    deliver(tenant, 6, "delivered", at=starts[-2], seconds=5, stream=f"est_{tenant.pk}")

    flows = flow_by_hour(STREAM, since=starts[0])

    assert len(flows) == 24
    assert flows[-2].success == 75
    assert flows[-2].median == flows[-2].most == pytest.approx(2)
    # The only delivery of this hour still waits, so the hour has no success rate and no latency.
    assert (flows[-1].number, flows[-1].success, flows[-1].most) == (1, None, None)
    assert flows[:-2] == [Flow()] * 22


def test_a_percentage_below_one_hundred_is_never_rounded_up_to_one_hundred() -> None:
    assert percent(Flow(accepted=99_999, failed=1).success) == "99.9 %"
    assert percent(Flow(accepted=5).success) == "100 %"
    assert percent(Flow().success) == "none"
