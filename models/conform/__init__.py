"""Any history, checked as a path of the spec's product and of the decision function."""

from models.conform.command import findings, findings_in, main

__all__ = ["findings", "findings_in", "main"]
