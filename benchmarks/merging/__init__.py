"""Parts of the merge benchmark.

inputs      one history, and its inputs with disorder
arrivals    arrival times of delayed elements (Figures 8 and 9)
switching   plans that compete, each fast where the other is slow (Figure 10)
"""
