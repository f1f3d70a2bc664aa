"""Runs the partitions of a suite as tasks of Spark, and merges them: spark-submit partitions_spark.py PROJECT PARTITIONS REPORTS

The project, ragcheck and the folder of reports are on a file system that all machines share.
"""

import pathlib
import subprocess
import sys

from pyspark.sql import SparkSession

project, partitions, reports = sys.argv[1], int(sys.argv[2]), str(pathlib.Path(sys.argv[3]).resolve())


def run(number):
    into = pathlib.Path(reports) / f"part-{number}"
    command = ["ragcheck", "run", "--partition", f"hash:{number}/{partitions}", "--report-dir", into]
    code = subprocess.run(command, cwd=project, capture_output=True).returncode
    return code, [str(folder.parent) for folder in into.glob("*/plan.json")]


context = SparkSession.builder.appName("ragcheck").getOrCreate().sparkContext
done = context.parallelize(range(1, partitions + 1), partitions).map(run).collect()
if 2 in (code for code, _ in done):
    sys.exit(2)
runs = [folder for _, folders in done for folder in folders]
sys.exit(subprocess.run(["ragcheck", "merge", *runs, "--report-dir", reports + "/merged"], cwd=project).returncode)
