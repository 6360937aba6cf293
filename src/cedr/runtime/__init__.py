"""Running a plan: the engine of one fragment, and the local runtime."""
