"""Login by WS-Federation providers elsewhere: connections of the strategies `adfs` and `waad`, where this service is the relying party."""
