"""Second factors and passkeys in the admin: settings of a tenant, policies of organizations, and factors of users."""
