"""Login through WS-Federation providers: connections of the strategies `adfs` and `waad`, where this service is the relying party."""
