"""The changes of ALTER TABLE and of a commit, and which of them exclude each other."""
