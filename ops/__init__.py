"""ops room."""
