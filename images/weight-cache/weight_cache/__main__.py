"""`python3 -m weight_cache run` and `python3 -m weight_cache manifest DIR`."""

from weight_cache.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
