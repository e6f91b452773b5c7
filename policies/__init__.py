"""policies room."""
