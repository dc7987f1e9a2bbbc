"""The tokens of external issuers that can be exchanged for tokens of this service, and the rule that finds their users."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_exchange_profile_id


class TokenExchangeProfile(UnrecordedOwned):
    """Subject tokens of one type: JWTs of one issuer for one audience. Each token names a user of one connection."""

    class UserClaim(models.TextChoices):
        SUBJECT = "sub"
        EMAIL = "email"

    id = models.CharField(primary_key=True, max_length=32, default=new_exchange_profile_id, editable=False)
    name = models.CharField(max_length=50)
    subject_token_type = models.CharField(max_length=100, help_text="A URI of the tenant's own.")
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=2048)
    audience = models.CharField(max_length=600, help_text="Required value in `aud` of a token: tokens for other services are refused.")
    jwks_uri = models.CharField(max_length=2048, blank=True, help_text="URL at which the issuer publishes its keys.")
    public_keys = models.JSONField(default=list, blank=True, help_text="Public keys of the issuer as JWKs, if it publishes them at no URL.")
    user_claim = models.CharField(max_length=8, choices=UserClaim, default=UserClaim.SUBJECT)
    creates_users = models.BooleanField(default=False, help_text="If on, the first token of a user creates the account.")
    is_single_use = models.BooleanField(default=True, help_text="If on, each token can be exchanged only once.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["subject_token_type", "tenant"], name="authapi_tokenexchange_type_unique")]
        indexes = [models.Index(fields=["tenant", "created_at", "id"], name="authapi_tokenexchange_list")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name
