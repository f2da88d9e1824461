"""`python -m agent_replay` is the command `agent-replay`."""

from agent_replay.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
