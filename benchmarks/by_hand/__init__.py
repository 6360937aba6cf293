"""Hand-written programs that the pattern benchmark compares with cedr.

matchers   a loop over events in the order of time, with what is waited for in a deque per machine
"""
