"""What judges the lifecycle and the code that enforces it, by looking at every state.

The package that ships imports nothing of this.
"""
