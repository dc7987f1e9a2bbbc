"""The Celery application, and the setup of its worker processes.

A worker needs the prefork pool: the sweeper and the numberer are threads of the forked children. The parent has no such threads, because
a child forked from a threaded process may inherit held locks.
"""

from __future__ import annotations

from typing import Any

from celery import Celery, signals
from django.conf import settings
from django.db import close_old_connections, connection

from config.task_transports import use_checked_transports
from foundation.tracing import spans as tracing

use_checked_transports()
app = Celery("identity")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

_CONNECTION_SECONDS = 600


@signals.setup_logging.connect
def keep_the_logging_of_the_settings(**_: Any) -> None:
    """Do nothing. Celery keeps the log handlers of the settings, which mask secrets, only if this signal has a receiver."""


@signals.worker_init.connect
def use_one_connection_per_thread(**_: Any) -> None:
    """Give each worker thread a persistent connection instead of the pool, which Celery would close after each task."""
    database = settings.DATABASES["default"]
    database["OPTIONS"].pop("pool", None)
    database["CONN_MAX_AGE"] = _CONNECTION_SECONDS
    database["CONN_HEALTH_CHECKS"] = True


@signals.worker_init.connect
def refuse_unsuitable_database(**_: Any) -> None:
    """End the worker before its first fork if DATABASE_STRATEGY has changed, or if the database is behind a pooler in transaction mode.

    Closes the connection, so that the children do not inherit it.
    """
    from foundation.database.pooler import TransactionPooling, refuse_transaction_pooling  # noqa: PLC0415
    from identity.services.database_strategy import StrategyChanged, refuse_changed_strategy  # noqa: PLC0415  (models are not ready before)

    try:
        refuse_transaction_pooling()
        refuse_changed_strategy()
    except (StrategyChanged, TransactionPooling) as refusal:
        # If a receiver of this signal raises any exception other than SystemExit, Celery only logs it and continues.
        raise SystemExit(str(refusal)) from refusal
    finally:
        connection.close()


@signals.worker_process_init.connect
def start_sweeper(**_: Any) -> None:
    """Start the sweeper of this process, after the fork."""
    from provisioning.engine.sweeper import SweeperThread  # noqa: PLC0415  (models are not ready when this module is read)

    SweeperThread().start()


@signals.worker_process_init.connect
def start_tracing(**_: Any) -> None:
    """Start the exporter of traces in this process, after the fork."""
    tracing.start()


@signals.worker_process_shutdown.connect
def stop_tracing(**_: Any) -> None:
    """Export the remaining spans."""
    tracing.stop()


@signals.worker_ready.connect
def compare_database(**_: Any) -> None:
    """Compare the identity of the database with the stored identity. Report a difference: the database may have been restored.

    Runs once per worker, on its own connection.
    """
    from events.log.database_identity import compare_at_start  # noqa: PLC0415  (models are not ready when this module is read)

    compare_at_start()


@signals.task_prerun.connect
@signals.task_postrun.connect
def check_connections(**_: Any) -> None:
    """Drop connections that an error or the server has closed."""
    close_old_connections()
