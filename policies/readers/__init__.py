"""Readers: files, standard input, command lines and plain values become facts."""
