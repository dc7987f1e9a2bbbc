"""`/account`: the pages on which users manage their own account. Users log in to these pages through an entry of the table of protocols."""
