"""Delta tables: read into a lake with history (`import_plan`), or written (`delta_export`)."""
