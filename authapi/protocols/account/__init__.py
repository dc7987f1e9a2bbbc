"""`/account`: the pages on which users manage their own account. For the login to these pages, the table of protocols has an entry."""
