"""local: the whole platform on one machine, with real parts; what can't be had here is simulated and says so.

Public face: `srvmod local up|status|down` (commands.py). stack.py drives from the host's side, supervisor.py runs
inside the stack's own namespaces, components.py says what runs, aws/ and providers/ simulate AWS,
nodes/ pretends p5 nodes, engine/ simulates vLLM.
"""
