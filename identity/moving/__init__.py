"""Moves a tenant to another installation: stop, export, import, and a switch on each side. Decision: docs/adr/0134."""
