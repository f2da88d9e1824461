"""Guarded commands over small finite variables: a language of this project's own."""
