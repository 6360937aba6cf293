"""Compiled parts of the automaton operator: its list of events, its runs, and how two answers differ."""
