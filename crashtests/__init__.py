"""Evidence: real processes are killed, and what came out is written down and verified.

`python -m crashtests.reproduce` makes a fresh report, `python -m crashtests.verify` judges one. The
package `agent_replay` never imports this.
"""
