"""Which maintenance a lake needs: `facts` are what the catalog says, `worth` decides.

`compaction` says which files are rewritten together.
"""
