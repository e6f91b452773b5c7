"""Test equipment: Pulumi plugins with the names `aws`, `eks` and `python` that work on the simulated AWS only.

`bin/` goes on PATH before `pulumi` runs. Nothing in infra/ knows of them.
"""
