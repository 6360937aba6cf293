"""Automata in plans: the node, and what its steps become."""

from cedr.plan.automata.automaton import Automaton
from cedr.plan.automata.steps import Step

__all__ = ["Automaton", "Step"]
