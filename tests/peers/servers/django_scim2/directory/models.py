"""Users and groups, as the documentation of django-scim2 defines them."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django_scim.models import AbstractSCIMGroupMixin, AbstractSCIMUserMixin


class Group(AbstractSCIMGroupMixin):
    """The model of groups. django-scim2 requires such a model, although no test creates a group."""

    name = models.CharField(max_length=100)


class User(AbstractSCIMUserMixin, AbstractUser):
    """A user of Django with the attributes of SCIM."""

    scim_groups = models.ManyToManyField(Group, related_name="members")
