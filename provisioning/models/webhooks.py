"""Secrets of webhook destinations."""

from __future__ import annotations

from django.db import models


class WebhookSecrets(models.Model):
    """Credentials that a stream sends to its webhook, as one sealed JSON object. No page or response shows the credentials."""

    stream_id = models.CharField(primary_key=True, max_length=26)
    tenant_id = models.CharField(max_length=63, db_index=True)
    sealed = models.TextField(editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "webhook secrets"

    def __str__(self) -> str:
        return self.stream_id
