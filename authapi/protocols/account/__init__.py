"""`/account`: people look after their own account. They log in by an entry of the table of protocols, for the service itself."""
