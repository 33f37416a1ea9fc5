"""The date rules, by table: what is a date and what only looks like one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.spans.dates import find_dates, is_date

FOUND = [
    # full dates
    ("Einstein was born on 14 March 1879 in Ulm.", ["14 March 1879"]),
    ("He died on April 18, 1955, in Princeton.", ["April 18, 1955"]),
    ("The file is dated 1879-03-14.", ["1879-03-14"]),
    ("It opened on the 4th of July 1776.", ["4th of July 1776"]),
    ("It opened on March 3rd, 1801.", ["March 3rd, 1801"]),
    ("She lived (10 December 1815 – 27 November 1852).", ["10 December 1815", "27 November 1852"]),
    ("Posted on 14/03/1879.", ["14/03/1879"]),
    ("The talks of 5–7 June 1944 failed.", ["5–7 June 1944"]),
    ("Signed Sept. 3, 1783.", ["Sept. 3, 1783"]),
    # day and month, month and year
    ("It falls on July 4 every year.", ["July 4"]),
    ("On 25 December they rest.", ["25 December"]),
    ("They met in June 1833.", ["June 1833"]),
    ("By March, 1848 it had spread.", ["March, 1848"]),
    # years in company
    ("In 1905 he published four papers.", ["1905"]),
    ("It has stood since 1492.", ["1492"]),
    ("The war of 1812 began.", ["1812"]),
    ("The film (1994) won.", ["1994"]),
    ("The plan (London, 1851) failed.", ["1851"]),
    ("From 1914 to 1918 it was closed.", ["1914", "1918"]),
    ("It was held in 1896, 1900 and 1904.", ["1896", "1900", "1904"]),
    ("The war (1914–1918) was long.", ["1914–1918"]),
    ("The season 1998–99 was short.", ["1998–99"]),
    ("The 1966 World Cup was in England.", ["1966"]),
    ("The 2000 census counted them.", ["2000"]),
    ("The summer of 1969 was hot.", ["1969"]),
    ("By mid-2014 it was over.", ["2014"]),
    ("He was born c. 1340 in London.", ["1340"]),
    ("As early as 1907 he knew.", ["1907"]),
    ("Rutherford's 1911 experiment settled it.", ["1911"]),
    ("In 1950 people moved to the city.", []),  # undecidable by rule; "1950 people" wins
    # decades, centuries, eras
    ("In the 1880s they came.", ["1880s"]),
    ("The '60s were loud.", ["'60s"]),
    ("In the early 1990's it grew.", ["1990's"]),
    ("A 19th-century house.", ["19th-century"]),
    ("Late in the nineteenth century it fell.", ["nineteenth century"]),
    ("The 18th and 19th centuries saw it.", ["18th and 19th centuries"]),
    ("The 3rd century BC began.", ["3rd century BC"]),
    ("Caesar died in 44 BC.", ["44 BC"]),
    ("It spread by 10,000 BC.", ["10,000 BC"]),
    ("In the Fourth Century it fell.", ["Fourth Century"]),
    ("Vesuvius erupted in AD 79.", ["AD 79"]),
    ("The 2nd millennium ended.", ["2nd millennium"]),
]

NOT_FOUND = [
    "Some 1500 people came.",
    "They sold 2000 copies in a week.",
    "It is 1500 km long.",
    "It costs $1999.",
    "See page 1905.",
    "See pp. 1012–1034 there.",
    "It weighs 1.905 tons.",
    "A crowd of 1,905 men.",
    "Flight 1549 landed.",
    "Route 1234 is closed.",
    "From 1500 to 2000 people live there.",
    "It rose by 1200 metres.",
    "A population of 1849 was recorded.",
    "He may 5 times a day.",
    "The march 10 miles on.",
    "ISBN 1945-2000-11",
    "It has 1440 × 1080 pixels.",
    "Version 1.2000 is out.",
    "The score was 10–9.",
    "The ratio 1914–12 is odd.",
    "A 1500-metre race.",
    "Model 1911 pistols.",
    "Of 1100 cases ten were grave, 1090 were not.",
    "Boiling at 2000 K is easy.",
    "It was 3000 years ago.",
    "He won May and lost April.",
    "the third time in a row",
    "",
]


@pytest.mark.parametrize(("text", "dates"), FOUND)
def test_dates_are_found(text, dates):
    assert [text[span.start : span.end] for span in find_dates(text)] == dates


@pytest.mark.parametrize("text", NOT_FOUND)
def test_numbers_and_words_that_are_no_dates(text):
    assert find_dates(text) == []


@pytest.mark.parametrize(
    "text", ["1905", "May", "Monday", "July 4", "19th century", " 14 March 1879 ", "1914–18", "1990s"]
)
def test_is_date(text):
    assert is_date(text)


@pytest.mark.parametrize("text", ["Einstein", "1905 film", "May Day parade", "Battle of 1815", "12", "", "Mayflower"])
def test_is_no_date(text):
    assert not is_date(text)


@given(st.text(alphabet="in (1905)–,.$ May14th century's\n", max_size=60))
def test_dates_never_overlap_and_lie_inside_the_text(text):
    spans = find_dates(text)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(left.end <= right.start for left, right in pairwise(spans))
