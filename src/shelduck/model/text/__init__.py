"""Names, quotes and time spans as people and catalogs write them."""
