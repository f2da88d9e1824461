"""The history in SQLite: files, lock, connections, schema, and what reads and writes the rows."""
