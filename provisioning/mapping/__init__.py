"""From a user document to a SCIM user."""
