"""Measured claims: scripts that print figures, and in README.md what they printed, when and where."""
