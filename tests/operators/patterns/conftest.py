"""Every test of patterns runs twice: with events in one level, as short streams have them, and in many."""

from level_sizes import event_levels  # noqa: F401 a fixture for all tests here
