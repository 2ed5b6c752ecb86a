"""Spark and its JVM: sessions, types, files, store assignment; nothing of it knows a catalog."""
