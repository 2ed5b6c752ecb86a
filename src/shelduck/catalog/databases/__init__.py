"""The databases that can hold a catalog: one store, and the differences below it."""
