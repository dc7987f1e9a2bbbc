"""A pytest plugin that gives the suite its servers before Django reads its settings."""
