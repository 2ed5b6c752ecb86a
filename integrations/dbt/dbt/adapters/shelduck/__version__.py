"""The version of the adapter, which goes with that of Shelduck."""

version = "0.2.0"
