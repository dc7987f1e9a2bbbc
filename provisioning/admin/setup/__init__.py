"""Parts of the guided setup: its forms, and the token that is kept while a form has errors."""
