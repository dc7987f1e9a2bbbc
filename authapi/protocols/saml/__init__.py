"""SAML 2.0: this service as the identity provider of applications."""
