"""Connects the apps: settings, routes, processes and the admin site. Only this package imports all apps."""

from config.settings.hidden_packages import hide_tracing

hide_tracing()

from config.celery import app as celery_app  # noqa: E402  (imports redis-py, which loads the packages)

__all__ = ["celery_app"]
