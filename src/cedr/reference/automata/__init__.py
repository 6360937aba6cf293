"""Automata over events: what a run is, and what the native operator and the recursive plan must both find."""

from cedr.reference.automata.automaton import ReferenceStep, automaton
from cedr.reference.automata.regex import regex

__all__ = ["ReferenceStep", "automaton", "regex"]
