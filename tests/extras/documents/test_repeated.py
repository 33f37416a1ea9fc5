"""What most pages of a folder begin or end with is left out, also of a site that nobody listed, and nothing of a text is."""

from __future__ import annotations

import pytest

from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings

pytest.importorskip("selectolax")
PLACES = ["Ash", "Bly", "Cor", "Dun", "Esk", "Fal", "Gar", "Hex", "Ive", "Jed", "Kew", "Lea"]


def texts(tmp_path, pages: dict[str, str]) -> dict[str, list[str]]:
    """The lines of each page of a folder."""
    for name, page in pages.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page)
    return {found.id: found.text.split("\n") for found in documents([tmp_path / "site"], CorpusSettings())}


def site(head: str, foot: str, body: str = "") -> dict[str, str]:
    """Pages in folders of their own, with text that differs."""
    return {
        f"{place}/index.html": f"<title>{place}</title><body>{head.replace('PLACE', place)}<h1>{place}</h1><p>Here is {place}, a village."
        f"<p>It has {number} shops.{body.replace('PLACE', place)}{foot.replace('PLACE', place)}"
        for number, place in enumerate(PLACES, 3)
    }


def test_bars_and_feet_without_a_name_are_left_out(tmp_path):
    head = "<div><a href='/'>All</a> <a href='/new'>New</a></div><table><tr><td>Back<td>PLACE<td>Home<td>On</table>"
    foot = (
        "<p>Send us a letter</p><table><tr><td>Before PLACE<td>Home<td>After PLACE</table><p>Made with Sitemaker 3</p>"
    )
    found = texts(tmp_path, site(head, foot))
    assert found == {
        f"{place}/index.html": [f"Here is {place}, a village.", f"It has {number} shops."]
        for number, place in enumerate(PLACES, 3)
    }


def test_a_named_page_and_one_of_few_keep_all(tmp_path):
    pages = site("<div>All New</div>", "<p>Made with Sitemaker 3</p>")
    few = texts(tmp_path, dict([*pages.items()][:7]))
    assert all(lines[0] == "All New" and lines[-1] == "Made with Sitemaker 3" for lines in few.values())
    (alone,) = documents([tmp_path / "site/Ash/index.html"], CorpusSettings())
    assert alone.text.endswith("Made with Sitemaker 3")


@pytest.mark.parametrize(
    ("head", "foot", "body"),
    [
        # sections that all pages have, as manuals do
        ("", "<h2>Copyright</h2><p>Free for all.</p>", ""),
        ("", "<h2>Options</h2><dl><dt>--help<dd>show this help and exit<dt>--version<dd>show the version and exit</dl>", ""),
        ("", "<p>See PLACE hall.</p>", "<p>This is the default.</p><p>Returns nothing.</p>"),
        ("<h2>Name</h2><p>Village</p>", "", ""),
        ("", f"<p>{'All villages have a church, and each has a story of its own. ' * 5}</p>", ""),
    ],
)  # fmt: skip
def test_what_pages_say_alike_stays(tmp_path, head, foot, body):
    pages = site(head, foot, body)
    found = texts(tmp_path, pages)
    for place in PLACES:
        (tmp_path / "alone.html").write_text(pages[f"{place}/index.html"])
        (alone,) = documents([tmp_path / "alone.html"], CorpusSettings())
        assert found[f"{place}/index.html"] == alone.text.split("\n")


def test_versions_of_one_text_stay_whole(tmp_path):
    lines = [f"Point {number} of the agreement." for number in range(30)]
    pages = {
        f"v{number}.html": f"<title>Agreement</title><p>{'<p>'.join([*lines, f'Version {number}'])}"
        for number in range(12)
    }
    assert texts(tmp_path, pages) == {name: [*lines, f"Version {name[1:-5]}"] for name in pages}


def test_two_sites_in_a_folder_are_counted_apart(tmp_path):
    one = {f"one/{name}": page for name, page in site("<div>First bar</div>", "").items()}
    two = {f"two/{name}": page for name, page in site("<div>Second bar</div>", "").items()}
    assert all(lines[0].startswith("Here is") for lines in texts(tmp_path, one | two).values())


@pytest.mark.parametrize(
    ("navigation", "is_left_out"),
    [
        ("<div class=navheader><table><tr><th colspan=3>A chapter with a long name<tr><td><a href=a>Prev</a><td><a href=b>Next</a></table></div>", True),
        ("<div class=navheader><h1>Words</h1><a href=a>x</a></div>", False),
        ("<div class=header><p>Next: <a href=a>Strings</a>, Up: <a href=b>Types</a></p></div>", True),
        ("<div class=header><p>The first words, with <a href=a>a link</a></p></div>", False),
        ("<table><tr class=header><td><a href=a>Strings</a><td><a href=b>Types</a></table>", False),
    ],
)  # fmt: skip
def test_navigation_of_docbook_and_texinfo(tmp_path, navigation, is_left_out):
    (lines,) = texts(tmp_path, {"a.html": f"<title>T</title><body>{navigation}<p>Text."}).values()
    assert (lines == ["Text."]) is is_left_out
