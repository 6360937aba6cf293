"""A replicated query whose members are killed: its jobs, its input, and who kills."""
