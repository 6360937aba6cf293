"""What the pattern benchmark measures beside cedr: programs as one writes them by hand.

matchers   a loop over events in the order of time, with what is waited for in a deque per machine
"""
