"""Names, quotes and spans of time as people and catalogs write them."""
