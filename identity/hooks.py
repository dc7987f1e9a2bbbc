"""Where other apps listen to identity without identity naming them."""

from __future__ import annotations

from django.dispatch import Signal

# Sent by managers that write several rows in one statement, inside the transaction: `sender` the model, `keys` its rows.
rows_changed = Signal()
