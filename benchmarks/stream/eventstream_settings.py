"""Settings of the smallest site with django-eventstream, which runs in its own environment.

Without storage: with it, every open stream would hold a thread and a database connection.
"""

from __future__ import annotations

SECRET_KEY = "only-for-a-measurement-on-loopback"
ALLOWED_HOSTS = ["localhost"]
INSTALLED_APPS = ["django_eventstream"]
DATABASES: dict[str, dict[str, str]] = {}
ROOT_URLCONF = "eventstream_site"
USE_TZ = True
