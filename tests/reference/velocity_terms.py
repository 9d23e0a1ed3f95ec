"""mu of docs/theory.md, (24), for the scripts that make steps of other programs into ours."""

import numpy


def middle_share(turns, time_step):
    """Of the squares of the angular velocities of a tree's joints, of which none may whip (22)."""
    turns = numpy.sort(turns)
    assert 2 * numpy.sum(turns[:-1] ** 4) ** 0.25 * time_step**2 < 0.01, "(22)"
    x = (numpy.sum((turns * time_step) ** 4) ** 0.25 - 1e-5) / 9e-5
    x = min(max(x, 0.0), 1.0)
    return x * x * (3 - 2 * x)
