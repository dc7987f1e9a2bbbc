"""The catalogues of hosted pages, mails and messages: texts are found in the source, merged into `locale`, judged and compiled.

For developers only (`make messages`): Babel stands in no lock of a running service. Decision: docs/adr/0099.
"""
