"""The tests of Shelduck; CONTRIBUTING.md says what goes where."""
