"""Background work that survives a crash: who is alive, and who is waited for."""
