"""Which maintenance a lake needs: `facts` are what the catalog says, `worth` decides."""
