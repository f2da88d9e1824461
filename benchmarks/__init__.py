"""What the runtime costs, measured in one run beside the least that could do the same work."""
