"""The driver: starts a query on Spark, plans its stages, and commits every micro-batch to the sinks.

session     a Spark session with cedr's settings
inputs      the input of a query: a DataFrame or files for each source
job         the data that the tasks of a run need
executors   checks the executors of a cluster before a query starts there
streaming   a query over streaming DataFrames
batch       the same query over static ones
answers     rows for a sink, and the metrics that Spark observes
"""
