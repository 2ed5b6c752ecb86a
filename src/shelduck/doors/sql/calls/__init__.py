"""The procedures that CALL knows."""
