"""Automata over events: steps with registers, the transition table, and the operator that runs them."""
