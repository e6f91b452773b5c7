"""A simulation of one vLLM server: its HTTP surface, metrics and scheduling, without a model or a GPU.

It never claims to be vLLM: /version, every response's `x-srvmod-simulation` header, the `server` header, the
system fingerprint and the log say that it is simulated.
"""

from typing import Final

VLLM_VERSION: Final = "0.33.0"
"""The vLLM release whose options, metrics and messages are reproduced."""

SIMULATION: Final = "srvmod-simulated-engine"
"""The name under which the simulation shows itself."""
