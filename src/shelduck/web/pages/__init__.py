"""One module for each page: it asks the catalog, and fills a template."""
