"""Runs the partitions of a suite as tasks of Ray, and merges them: python partitions_ray.py PROJECT PARTITIONS REPORTS

The project, ragcheck and the folder of reports are on a file system that all machines share.
"""

import pathlib
import subprocess
import sys

import ray

project, partitions, reports = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()


@ray.remote
def run(number):
    into = reports / f"part-{number}"
    command = ["ragcheck", "run", "--partition", f"hash:{number}/{partitions}", "--report-dir", into]
    code = subprocess.run(command, cwd=project, capture_output=True).returncode
    return code, [str(folder.parent) for folder in into.glob("*/plan.json")]


ray.init(log_to_driver=False)
done = ray.get([run.remote(number) for number in range(1, partitions + 1)])
if 2 in (code for code, _ in done):
    sys.exit(2)
runs = [folder for _, folders in done for folder in folders]
sys.exit(subprocess.run(["ragcheck", "merge", *runs, "--report-dir", reports / "merged"], cwd=project).returncode)
