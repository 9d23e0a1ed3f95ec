"""What the scripts share that hold simctl against another engine."""
import json
import subprocess

import numpy


def simctl(program, *arguments):
    """Its output. Raises RuntimeError with the last line of what it says where it fails."""
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    return result.stdout


def dynamics(program, robot, *arguments):
    """What `simctl dynamics` prints of a robot."""
    return json.loads(simctl(program, "dynamics", robot, "--quiet", *arguments))


def relative(ours, theirs, least=1e-300):
    """Largest difference over the largest number, which is at least `least`."""
    ours, theirs = numpy.asarray(ours), numpy.asarray(theirs)
    if theirs.size == 0:
        return 0.0
    return float(abs(ours - theirs).max() / max(abs(theirs).max(), least))
