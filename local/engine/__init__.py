"""The simulated engine (package srvmod_engine, made for its own image) and the tiny weights that it serves."""
