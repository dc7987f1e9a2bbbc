"""Moves of tenants between installations."""

from __future__ import annotations

from django.db import models


class TenantMove(models.Model):
    """A move of a tenant that is in progress here. The row is deleted when the move ends, and a move never copies it."""

    class Direction(models.TextChoices):
        OUT = "out"
        IN = "in"

    # There is no foreign key, so the database does not enforce an order of deletions. The removal of an import deletes the other rows of
    # the tenant first, then this row, then the tenant.
    tenant_id = models.CharField(primary_key=True, max_length=63)
    direction = models.CharField(max_length=3, choices=Direction)
    archive_id = models.UUIDField(null=True, help_text="The archive of the import, or the verified archive of the export.")
    earlier_status = models.CharField(max_length=16, help_text="The status that the tenant gets back.")
    offsets = models.JSONField(default=dict, help_text="For each table: the number that the import adds to the primary keys.")
    parts_done = models.PositiveIntegerField(default=0, help_text="Number of parts of the archive whose rows are imported.")
    is_verified = models.BooleanField(default=False, help_text="Counts and digests of all tables match.")
    receipt_digest = models.CharField(max_length=64, default="", help_text="Digest of the receipt that the other installation prints.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("tenant_id",)

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.direction}"
