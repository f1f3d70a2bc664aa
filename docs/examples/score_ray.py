"""Scores a run of many traces in slices, as tasks of Ray: python score_ray.py RUN SLICES [OPTIONS OF SCORE]

The run folder and ragcheck are on a file system that all machines share.
"""

import subprocess
import sys

import ray

run, slices, options = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


@ray.remote
def examine(number):
    return subprocess.run(["ragcheck", "score", run, "--slice", f"{number}/{slices}", *options]).returncode


ray.init(log_to_driver=False)
codes = ray.get([examine.remote(number) for number in range(1, slices + 1)])
sys.exit(max(codes) or subprocess.run(["ragcheck", "score", run, "--slices", str(slices), *options]).returncode)
