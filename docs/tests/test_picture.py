"""The picture of README is well-formed, fresh and in both palettes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from docs.make_picture import BOXES, FOLDER, HEIGHT, PALETTES, WIDTH, draw


@pytest.mark.parametrize("name", PALETTES)
def test_the_file_is_fresh(name):
    assert (FOLDER / f"realm-{name}.svg").read_text(encoding="utf-8") == draw(PALETTES[name]), (
        "run: python docs/make_picture.py"
    )


def test_boxes_lie_inside_and_apart():
    root = ElementTree.fromstring(draw(PALETTES["light"]))
    boxes = [
        [float(each.attrib[key]) for key in ("x", "y", "width", "height")]
        for each in root.iter()
        if "rx" in each.attrib
    ]
    assert len(boxes) == len(BOXES) + 1
    for n, (x, y, width, height) in enumerate(boxes):
        assert x >= 0 and y >= 0 and x + width <= WIDTH and y + height <= HEIGHT
        for left, top, across, down in boxes[:n]:
            assert x + width <= left or left + across <= x or y + height <= top or top + down <= y
