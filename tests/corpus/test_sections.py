"""A block knows its section, no block ends with a line that leads the next, and lines of a section make up blocks of a few words at least."""

from __future__ import annotations

import random

import numpy as np
import pytest

from realmctl.corpus.blocks import BlockPacker
from realmctl.corpus.blocks_file import record_of
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


def headings_above(outline: list[tuple[int, str]], text: str) -> list[str]:
    """The headings above a line of text, outermost first, by walking up from it."""
    place = [line for _, line in outline].index(text)
    path, least = [], 9
    for level, line in reversed(outline[:place]):
        if 0 < level < least:
            path.insert(0, line)
            least = level
    return path


def expected_section(outline: list[tuple[int, str]], texts: list[str]) -> str:
    """What the headings above all lines of text have in common."""
    paths = [headings_above(outline, text) for text in texts]
    return " / ".join(each[0] for each in zip(*paths, strict=False) if len(set(each)) == 1)


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
def test_each_block_has_the_headings_above_all_of_its_text(seed, limit):
    outline = random_outline(seed)
    blocks = list(packer(limit).blocks(made(outline)))
    leading = {line for level, line in outline if level}
    assert " ".join(" ".join(block.text.split()) for block in blocks) == " ".join(line for _, line in outline)
    for block in blocks:
        lines = [line.strip() for line in block.text.split("\n")]
        assert block.section == expected_section(outline, [line for line in lines if line not in leading])
        assert lines[-1] not in leading
        assert 3 + len(ids(block.wordpieces.title)) + len(ids(block.wordpieces.body)) <= limit


def test_the_section_is_no_part_of_what_vectors_and_bm25_read():
    """docs/results/hybrid.md: with it a search finds less."""
    outline = [(1, "Part river"), (2, "Part stone"), *((0, f"{' '.join(WORDS[:6])}.") for _ in range(30))]
    document = made(outline)
    blocks = list(packer(80).blocks(document))
    assert len(blocks) > 2 and {block.section for block in blocks} == {"Part river / Part stone"}
    for block in blocks:
        assert ids(block.wordpieces.title) == WORDPIECE.ids("Guide").tolist()
        assert ids(block.wordpieces.body) == WORDPIECE.ids(block.text).tolist()


def test_a_block_is_stored_with_its_section_and_one_without_as_before(tmp_path):
    outline = [(1, "Part river"), *((0, f"{' '.join(WORDS[:6])}.") for _ in range(30))]
    blocks = [*packer(80).blocks(made(outline)), *packer(80).blocks(Document("e", "Plain", "river stone lamp."))]
    assert [record_of(block).get("section") for block in blocks] == ["Part river"] * (len(blocks) - 1) + [None]
    assert [*record_of(blocks[-1])] == ["id", "document", "title", "text", "sentences", "anchors"]


def test_a_long_heading_is_cut_in_the_section():
    text = [(0, f"{' '.join(WORDS[:6])}.") for _ in range(8)]
    for block in packer(60).blocks(made([(1, ("river " * 300).strip()), *text])):
        assert len(block.section) <= 200


def test_what_the_title_says_already_is_no_section():
    (block,) = packer(100).blocks(made([(1, "Guide"), (2, "Part lamp"), (0, "river stone.")], "The Guide of us"))
    assert block.section == "Part lamp"


def test_a_term_goes_with_the_rest_of_a_definition_that_is_cut_and_a_row_of_names_with_its_table():
    lines = ["Part lamp", "Term river", *(f"{' '.join(WORDS[:7])} {number}." for number in range(12)), "bread."]
    text = "\n".join(lines)
    term = len(lines[0]) + 1
    leads = (Lead(0, 9, len(text)), Lead(term, term + 10, text.index("\nbread."), is_heading=False))
    first, *others = packer(40).blocks(Document("d", "Guide", text, has_lines=True, leads=leads))
    assert first.text.startswith("Part lamp\nTerm river\n") and first.section == "Part lamp"
    assert len(others) > 2
    for block in others:
        assert block.section == "Part lamp" + " / Term river" * (
            "\nbread." not in block.text and block.text != "bread."
        )


def test_a_kept_passage_has_no_section():
    outline = [(1, "Part lamp"), (0, "river stone."), (1, "Part cloud"), (0, "bread.")]
    (block,) = packer(100, keep_passages=True).blocks(made(outline))
    assert block.section == ""


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


def test_a_block_of_few_words_takes_lines_of_the_one_before_it_in_its_section():
    lines = ["Part lamp", *(f"{' '.join(WORDS[: 4 + number % 3])} {number}." for number in range(60))]
    for limit in range(80, 120, 4):
        for count in range(40, 60):
            outline = [(1, lines[0]), *((0, line) for line in lines[1:count])]
            blocks = list(packer(limit).blocks(made(outline)))
            assert [len(block.text.split()) for block in blocks if len(block.text.split()) < 15] == []
            assert "\n".join(block.text for block in blocks) == "\n".join(lines[:count])
            assert all(len(ids(each.wordpieces.title)) + len(ids(each.wordpieces.body)) <= limit - 3 for each in blocks)


def test_a_short_section_takes_no_lines_of_another():
    text = [(0, f"{' '.join(WORDS[:7])} {number}.") for number in range(12)]
    outline = [(1, "Part lamp"), *text, (1, "Part cloud"), (0, f"{' '.join(WORDS)} river.")]
    *_, last = packer(70).blocks(made(outline))
    assert last.text.startswith("Part cloud\n") and last.section == "Part cloud"
