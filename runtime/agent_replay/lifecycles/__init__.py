"""The machines as tables, GENERATED from spec/ by spec/generate.py; do not edit."""
