"""Login through SAML 2.0 providers: connections of the strategies `samlp` and `pingfederate`. This service is the service provider."""
