"""Login, proof of identity and second factors of staff: the pages of the admin that belong to no tenant."""
