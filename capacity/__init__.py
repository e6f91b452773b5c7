"""capacity room."""
