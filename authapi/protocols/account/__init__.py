"""`/account`: the pages on which users manage their own account. They log in through an entry of the table of protocols."""
