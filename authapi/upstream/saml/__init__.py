"""Login by SAML 2.0 providers elsewhere: connections of the strategies `samlp` and `pingfederate`, where we are the service provider."""
