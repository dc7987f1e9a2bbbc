"""Version 1 of the event-stream trigger: the classes an action may name as its entry point live in this package."""

from provisioning.actions.event_stream.v1.scim_users import ScimUserProvisioning

__all__ = ["ScimUserProvisioning"]
