"""Jobs on Spark share the session of the other tests on Spark."""

from runtime.spark.conftest import spark as spark
