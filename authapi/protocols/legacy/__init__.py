"""Endpoints for old clients, one module for each endpoint.

A client must opt in to each endpoint (ADR 0103). New applications use none of these endpoints.
"""
