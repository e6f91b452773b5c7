"""Records the program's graph without engine, cloud or cluster, and writes what each environment applies."""
