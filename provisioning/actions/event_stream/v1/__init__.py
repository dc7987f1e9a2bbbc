"""Version 1 of the event-stream trigger. Classes that actions may name as their entry point must be in this package."""

from provisioning.actions.event_stream.v1.scim_users import ScimUserProvisioning

__all__ = ["ScimUserProvisioning"]
