"""The sweep: real processes killed at every input and output of the history, and around each
effect.

`python -m crashtests.sweep` makes a report; `python -m crashtests.verify` judges one.
"""
