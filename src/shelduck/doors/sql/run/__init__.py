"""One function for each kind of statement; `RUN` at the end of a module says which."""
