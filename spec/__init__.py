"""The spec and what reads it. Standard library only; nothing here imports the runtime."""
