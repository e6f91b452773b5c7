"""contract room."""
