"""infra room."""
