"""The driver: starts a query on Spark, plans its stages, and brings every micro-batch to the sinks.

session     a Spark session with cedr's settings
inputs      what a query reads: a DataFrame or files for each source
job         what the tasks of a run need to know
streaming   a query over streaming DataFrames
batch       the same query over static ones
answers     rows for a sink, and the metrics that Spark observes
"""
