"""Scores a run of many traces in slices, as tasks of Spark: spark-submit score_spark.py RUN SLICES [OPTIONS OF SCORE]

The run folder and ragcheck are on a file system that all machines share.
"""

import subprocess
import sys

from pyspark.sql import SparkSession

run, slices, options = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


def examine(number):
    return subprocess.run(["ragcheck", "score", run, "--slice", f"{number}/{slices}", *options]).returncode


context = SparkSession.builder.appName("ragcheck").getOrCreate().sparkContext
codes = context.parallelize(range(1, slices + 1), slices).map(examine).collect()
sys.exit(max(codes) or subprocess.run(["ragcheck", "score", run, "--slices", str(slices), *options]).returncode)
