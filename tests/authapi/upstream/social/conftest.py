from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from authapi.upstream import metadata
from identity.models import Tenant
from tests.factories.social_provider import SocialLogin, social_login, social_provider

Begin = Callable[..., SocialLogin]


@pytest.fixture
def at(tenant: Tenant, settings: Settings) -> Iterator[Begin]:
    """Return a function that starts a provider of a strategy, sets `PROVIDER_ADDRESSES` to its URLs, and creates a login there."""
    metadata.documents.clear()
    with ExitStack() as running:

        def begin(strategy: str, **options: Any) -> SocialLogin:
            provider = running.enter_context(social_provider(strategy))
            settings.PROVIDER_ADDRESSES = {strategy: provider.addresses}
            return social_login(tenant, provider, **options)

        yield begin
    metadata.documents.clear()
