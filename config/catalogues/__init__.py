"""Translates hosted pages, mails and messages: extracts the texts, merges them into `locale`, and checks and compiles the catalogues.

For developers only (`make messages`): Babel is not in the lock file of a running service. Decision: docs/adr/0099.
"""
