"""Catalogues of translations for hosted pages, mails and messages: extract texts, merge them into `locale`, check and compile.

For developers only (`make messages`): Babel is not in the lock file of a running service. Decision: docs/adr/0099.
"""
