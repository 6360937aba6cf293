"""Nexmark, the auction benchmark: people, auctions and bids from a generator of our own, and its queries q0 to q8.

generator   the events, from a seed: one person, three auctions and 46 bids in 50, some late, some corrected
streams     the sources as cedr sees them
questions   the nine queries as workloads: in cedr, in polars, and in Spark's own streaming where it can
in_cedr, in_polars, in_spark    the queries, one function each
"""
