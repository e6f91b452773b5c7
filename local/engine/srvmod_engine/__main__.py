"""`python3 -m srvmod_engine serve MODEL [options of vllm serve]`."""

from srvmod_engine.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
