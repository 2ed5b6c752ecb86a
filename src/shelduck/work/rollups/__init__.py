"""Rollups as tables that follow their base: made, altered, and used in answers."""
