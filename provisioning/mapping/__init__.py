"""Maps a user document to a SCIM user."""
