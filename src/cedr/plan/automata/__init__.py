"""Automata in plans: what the steps of an automaton become, and automata as loops."""
