"""What the merge benchmark is made of.

told        one history, and how inputs tell it
arrivals    when elements arrive that are delayed on their way (Figures 8 and 9)
switching   plans that compete, each fast where the other is slow (Figure 10)
"""
