"""The page of a lake: pages that a server makes from the catalog, for a browser on this machine.

`shelduck.web.application` starts the server. No page starts Java, and no page writes, except for
the buttons of ``--allow-changes``.
"""
