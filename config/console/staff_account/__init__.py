"""How staff sign in, prove themselves, and look after their own factors: the pages of the admin that belong to no tenant."""
