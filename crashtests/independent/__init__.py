"""A second implementation of chain and lifecycle, for whoever trusts nothing of the runtime.

It uses the standard library and `spec/*.toml`, and runs on a bare clone before anything is
installed. Nothing here may import `agent_replay`.
"""
