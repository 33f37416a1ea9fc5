"""A block is named by its title and its section, within a bound, and no block ends with a line that leads the next."""

from __future__ import annotations

import random

import numpy as np
import pytest

from realmctl.corpus.blocks import BlockPacker
from realmctl.corpus.document import Document, Lead
from realmctl.corpus.settings import ChunkSettings
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.training import train

WORDS = ["river", "stone", "lamp", "cloud", "horse", "bread", "music", "winter", "garden", "letter"]
WORDPIECE = train(
    [" ".join(WORDS), "unhorsed cloudless lamps / Part Table Term"] * 3, TokenizerRecipe("wordpiece", 220)
)


def packer(limit: int, **settings) -> BlockPacker:
    return BlockPacker(WORDPIECE, ChunkSettings(max_wordpieces=limit, **settings))


def ids(packed: bytes) -> list[int]:
    return np.frombuffer(packed, WORDPIECE.dtype).tolist()


def made(outline: list[tuple[int, str]], title: str = "Guide") -> Document:
    """A document of lines, each with its level as a heading, 0 for text and 9 for a term that leads the one line behind it."""
    starts, place = [], 0
    for _, line in outline:
        starts.append(place)
        place += len(line) + 1
    ends = [start + len(line) for start, (_, line) in zip(starts, outline, strict=True)]
    leads = []
    for number, (level, _) in enumerate(outline):
        if level == 9:
            leads.append(Lead(starts[number], ends[number], ends[number + 1], is_heading=False))
        elif level:
            later = [k for k in range(number + 1, len(outline)) if 0 < outline[k][0] <= level]
            leads.append(Lead(starts[number], ends[number], ends[later[0] - 1] if later else ends[-1]))
    return Document("d", title, "\n".join(line for _, line in outline), has_lines=True, leads=tuple(leads))


def expected_section(outline: list[tuple[int, str]], first_line: str) -> str:
    """The headings above a line of text, by walking up from it."""
    place = [line for _, line in outline].index(first_line)
    path, least = [], 9
    for level, line in reversed(outline[:place]):
        if 0 < level < least:
            path.insert(0, line)
            least = level
    return " / ".join(path)


def random_outline(seed: int) -> list[tuple[int, str]]:
    draw, outline = random.Random(seed), list[tuple[int, str]]()
    for number in range(60):
        words = " ".join(draw.choices(WORDS, k=draw.randint(3, 9)))
        kind = draw.random()
        if kind < 0.25:
            outline.append((draw.randint(1, 4), f"Part {number} {draw.choice(WORDS)}"))
        elif kind < 0.4:
            outline += [(9, f"Term {number}"), (0, f"{number} {words}.")]
        else:
            outline.append((0, f"{number} {words}."))
    return [*outline, (0, "last letter.")]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limit", [48, 100])
def test_each_block_has_the_headings_above_its_first_text(seed, limit):
    outline = random_outline(seed)
    blocks = list(packer(limit).blocks(made(outline)))
    leading = {line for level, line in outline if level}
    assert " ".join(" ".join(block.text.split()) for block in blocks) == " ".join(line for _, line in outline)
    for block in blocks:
        lines = [line.strip() for line in block.text.split("\n")]
        assert block.section == expected_section(outline, next(line for line in lines if line not in leading))
        assert lines[-1] not in leading
        assert 3 + len(ids(block.wordpieces.title)) + len(ids(block.wordpieces.body)) <= limit
        assert len(ids(block.wordpieces.title)) <= len(WORDPIECE.ids("Guide")) + (limit - 3) // 4


def test_the_name_of_a_block_is_its_title_and_its_section():
    outline = [(1, "Part river"), (2, "Part stone"), *((0, f"{' '.join(WORDS[:6])}.") for _ in range(30))]
    blocks = list(packer(80).blocks(made(outline)))
    assert len(blocks) > 2 and {block.section for block in blocks} == {"Part river / Part stone"}
    for block in blocks:
        assert ids(block.wordpieces.title) == WORDPIECE.ids("Guide / Part river / Part stone").tolist()
        assert ids(block.wordpieces.body) == WORDPIECE.ids(block.text).tolist()
    (untitled, *_) = packer(80).blocks(made(outline, ""))
    assert ids(untitled.wordpieces.title) == WORDPIECE.ids("Part river / Part stone").tolist()


def test_a_long_section_keeps_its_innermost_heading_and_leaves_the_text_its_room():
    deep = [(level, f"Part {WORDS[level]} {WORDS[level + 4]} lamp") for level in range(1, 5)]
    text = [(0, f"{' '.join(WORDS[:6])}.") for _ in range(8)]
    blocks = list(packer(60).blocks(made([*deep, *text])))
    for block in blocks:
        assert block.section == " / ".join(line for _, line in deep)
        name = ids(block.wordpieces.title)
        assert name == WORDPIECE.ids(f"Guide / {deep[-1][1]}").tolist() or len(name) <= 1 + 57 // 4
    huge = "river " * 300
    for block in packer(60).blocks(made([(1, huge.strip()), *text])):
        assert len(ids(block.wordpieces.title)) <= len(WORDPIECE.ids("Guide")) + 57 // 4
        assert len(block.section) <= 200


def test_what_the_title_says_already_is_no_section():
    (block,) = packer(100).blocks(made([(1, "Guide"), (2, "Part lamp"), (0, "river stone.")], "The Guide of us"))
    assert block.section == "Part lamp"


def test_a_term_goes_with_the_rest_of_a_definition_that_is_cut_and_a_row_of_names_with_its_table():
    lines = ["Part lamp", "Term river", *(f"{' '.join(WORDS[:7])} {number}." for number in range(12)), "bread."]
    text = "\n".join(lines)
    term = len(lines[0]) + 1
    leads = (Lead(0, 9, len(text)), Lead(term, term + 10, text.index("\nbread."), is_heading=False))
    first, *others = packer(48).blocks(Document("d", "Guide", text, has_lines=True, leads=leads))
    assert first.text.startswith("Part lamp\nTerm river\n") and first.section == "Part lamp"
    assert len(others) > 2
    for block in others:
        assert block.section == "Part lamp" + " / Term river" * (not block.text.startswith("bread"))


def test_a_kept_passage_has_no_section():
    outline = [(1, "Part lamp"), (0, "river stone."), (1, "Part cloud"), (0, "bread.")]
    (block,) = packer(100, keep_passages=True).blocks(made(outline))
    assert block.section == "" and ids(block.wordpieces.title) == WORDPIECE.ids("Guide").tolist()


def test_deeply_nested_leads_cost_no_more_than_their_number():
    """A definition in a definition, thousands of times: a name has the innermost eight."""
    count = 4000
    lines = [f"Term {number}" for number in range(count)] + [f"{' '.join(WORDS[:7])}." for _ in range(200)]
    text, leads, place = "\n".join(lines), [], 0
    for line in lines[:count]:
        leads.append(Lead(place, place + len(line), len(text), is_heading=False))
        place += len(line) + 1
    *_, last = packer(100).blocks(Document("d", "Guide", text, has_lines=True, leads=tuple(leads)))
    assert last.section == " / ".join(lines[count - 8 : count])
