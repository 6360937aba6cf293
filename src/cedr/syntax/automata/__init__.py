"""Regular expressions over events, and the automata they become."""
