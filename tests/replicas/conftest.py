"""Replicas run on Spark."""

from runtime.spark.conftest import spark

__all__ = ["spark"]
