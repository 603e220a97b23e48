"""Boxes of labels: how far points lie from them."""

from __future__ import annotations

import numpy as np

from heapwright._report.labels import Box, Marker


def test_many_points_are_as_far_as_each_of_them() -> None:
    box = Box(10, 20, 40, 30)
    points = np.random.default_rng(7).uniform(0, 60, (500, 2))
    points[:4] = [(10, 20), (25, 25), (40, 31), (0, 0)]
    each = [box.distance(Marker(x, y)) for x, y in points.tolist()]
    assert np.allclose(box.distances(points), each, rtol=0, atol=1e-12)
