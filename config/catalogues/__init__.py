"""Catalogues of translations for hosted pages, mails and messages: extracts texts, merges them into `locale`, checks and compiles them.

For developers only (`make messages`): Babel is not in the lock file of a running service. Decision: docs/adr/0099.
"""
