"""Each element of docutils and directive of Sphinx with words of its own: they come out once, in order and apart."""

from __future__ import annotations

import pytest

from realmctl.extras.documents import by_pandoc
from realmctl.extras.documents.sphinx import as_text
from tests.extras.documents.elements.snippets import faults, filled
from tests.extras.documents.test_by_pandoc import read

pytest.importorskip("selectolax")
pytestmark = pytest.mark.skipif(by_pandoc._pandoc() is None, reason="needs pandoc")

OBJECTS = [
    *[
        "function",
        "data",
        "exception",
        "class",
        "method",
        "classmethod",
        "staticmethod",
        "attribute",
        "property",
        "decorator",
        "type",
    ],
    *[
        "py:function",
        "py:data",
        "py:exception",
        "py:class",
        "py:method",
        "py:attribute",
        "py:property",
        "py:decorator",
        "py:type",
    ],
    *["c:function", "c:member", "c:macro", "c:struct", "c:union", "c:enum", "c:enumerator", "c:type", "c:var"],
    *[
        "cpp:class",
        "cpp:struct",
        "cpp:function",
        "cpp:member",
        "cpp:var",
        "cpp:type",
        "cpp:enum",
        "cpp:enum-class",
        "cpp:concept",
        "cpp:union",
    ],
    *["js:function", "js:method", "js:class", "js:data", "js:attribute", "rst:directive", "rst:role"],
    *["option", "envvar", "confval", "describe", "object", "opcode", "pdbcommand", "std:option", "std:envvar"],
]
ROLES = [
    "func",
    "class",
    "meth",
    "ref",
    "doc",
    "term",
    "py:mod",
    "c:func",
    "cpp:any",
    "js:func",
    "option",
    "envvar",
    "keyword",
    "file",
    "kbd",
    "samp",
    "guilabel",
    "command",
    "emphasis",
    "strong",
    "literal",
    "sub",
    "sup",
    "title",
    "code",
]
ADMONITIONS = [
    "attention",
    "caution",
    "danger",
    "error",
    "hint",
    "important",
    "note",
    "tip",
    "warning",
    "seealso",
    "versionadded",
    "versionchanged",
    "deprecated",
]
ELEMENTS = [
    *((f".. {name}::", f".. {name}:: @(@, *@, **@)\n\n   @\n") for name in OBJECTS),
    *((f".. {name}:: with options", f".. {name}:: @(@)\n   :no-index:\n\n   @\n") for name in OBJECTS),
    *((f":{name}:", f"@ :{name}:`@` @\n") for name in ROLES),
    *(
        (f".. {name}:: as admonition", f".. {name}::\n   @\n")
        for name in ADMONITIONS
        if not name.startswith(("version", "dep"))
    ),
    *((f".. {name}:: 3.1", f".. {name}:: 3.1\n   @\n") for name in ADMONITIONS if name.startswith(("version", "dep"))),
    ("two signatures", ".. function:: @(@)\n              @(*@)\n\n   @\n"),
    (
        "an object in another",
        ".. class:: @()\n\n   @\n\n   .. method:: @()\n\n      @\n\n   .. attribute:: @\n      :type: @\n      :value: @\n\n      @\n",
    ),
    ("a class of docutils", ".. class:: special\n\n@\n"),
    ("paragraph", "@\n"),
    ("emphasis", "*@* **@** ``@`` `@ <x>`_ `@`__ @_\n\n__ http://a\n"),
    ("section", "@\n====\n\n@\n----\n\n@\n"),
    ("bullets", "- @\n\n- @\n\n  - @\n\n    @\n"),
    ("numbers", "1. @\n2. @\n\n#. @\n\na) @\n"),
    ("definitions", "@\n   @\n\n@ : x\n   @\n"),
    ("fields", ":@: @\n:@: @\n"),
    ("options", "-a       @\n--long=x  @\n"),
    ("literal block", "@::\n\n   @\n\n     @\n"),
    ("quoted literal block", "@::\n\n> @\n> @\n"),
    ("line block", "| @\n| @\n|   @\n"),
    ("block quote", "@\n\n   @\n\n   -- @\n"),
    ("doctest", ">>> @\n@\n"),
    (
        "grid table",
        "+--------------+--------------+\n| @     | @     |\n+==============+==============+\n| @     | @     |\n+--------------+--------------+\n".replace(
            "@     ", "@     "
        ),
    ),
    ("simple table", "==========  ==========\n@     @\n==========  ==========\n@     @\n==========  ==========\n"),
    ("csv-table", '.. csv-table:: @\n   :header: "@", "@"\n\n   @, @\n'),
    ("list-table", ".. list-table:: @\n   :header-rows: 1\n\n   * - @\n     - @\n   * - @\n     - @\n"),
    (
        "table",
        ".. table:: @\n\n   ==========  ==========\n   @     @\n   ==========  ==========\n   @     @\n   ==========  ==========\n",
    ),
    ("figure", ".. figure:: x.png\n   :alt: ~\n\n   @\n\n   @\n"),
    ("image", ".. image:: x.png\n   :alt: ~\n"),
    ("topic", ".. topic:: @\n\n   @\n"),
    ("sidebar", ".. sidebar:: @\n\n   @\n"),
    ("admonition", ".. admonition:: @\n\n   @\n"),
    ("rubric", ".. rubric:: @\n"),
    ("epigraph", ".. epigraph::\n\n   @\n\n   -- @\n"),
    ("compound", ".. compound::\n\n   @\n"),
    ("container", ".. container:: x\n\n   @\n"),
    ("parsed-literal", ".. parsed-literal::\n\n   @ *@*\n"),
    ("code-block", ".. code-block:: python\n   :linenos:\n\n   @ = @\n"),
    ("code with a caption", ".. code-block:: python\n   :linenos:\n   :caption: @ *@*\n\n   @\n"),
    ("code of rst", ".. code-block:: rst\n\n   .. py:function:: @(@)\n      :no-index:\n"),
    ("math", ".. math:: x\n"),
    ("glossary", ".. glossary::\n\n   @\n      @\n"),
    ("hlist", ".. hlist::\n\n   * @\n   * @\n"),
    ("centered", ".. centered:: @\n"),
    ("productionlist", ".. productionlist::\n   @: @\n"),
    ("only", ".. only:: html\n\n   @\n"),
    ("comment", ".. ~\n"),
    ("index", ".. index:: ~\n"),
    ("toctree", ".. toctree::\n\n   ~\n"),
    ("module", ".. module:: ~\n   :synopsis: ~\n"),
    ("py:module", ".. py:module:: ~\n"),
    ("py:currentmodule", ".. py:currentmodule:: ~\n"),
    ("cpp:namespace", ".. cpp:namespace:: ~\n"),
    ("program", ".. program:: ~\n"),
    ("highlight", ".. highlight:: ~\n"),
    ("include", ".. include:: ~.txt\n"),
    ("meta", ".. meta::\n   :description: ~\n"),
    ("footnote", "@ [#f]_ @\n"),
    ("target", ".. _~: http://a/\n\n@\n"),
]


def test_the_words_of_each_element_come_out_once_in_order_and_apart(tmp_path):
    made = filled(ELEMENTS)
    (tmp_path / "a.rst").write_text(made.text)
    found = read(tmp_path / "a.rst")
    assert faults(made, f"{found.title}\n{found.text}") == {}


def test_signatures_are_lines_as_sphinx_shows_them(tmp_path):
    (tmp_path / "a.rst").write_text(
        """Tools
=====

.. class:: Heap([items, *, key=None])
           Heap(**settings)

   Holds things.

   .. py:classmethod:: merge(*heaps)
      :abstractmethod:

      Merges them.

.. c:function:: int heap_push(heap_t *heap, \\
                              void *item)

.. cpp:class:: template<typename T> Heap : public Base

.. py:data:: version
   :type: str
   :value: "1.2"

.. py:function:: wait()
   :async:

.. py:module:: heaps

A literal::

   .. py:function:: shown()
      :async:
"""
    )
    assert read(tmp_path / "a.rst").text.split("\n") == [
        "class Heap([items, *, key=None])",
        "class Heap(**settings)",
        "Holds things.",
        "classmethod merge(*heaps)",
        "Merges them.",
        "int heap_push(heap_t *heap, void *item)",
        "template<typename T> Heap : public Base",
        'version: str = "1.2"',
        "async wait()",
        "A literal:",
        ".. py:function:: shown()",
        "   :async:",
    ]


def test_a_source_without_directives_of_sphinx_stays():
    source = "Title\n=====\n\n.. note:: Words\n\n.. class:: special wide\n\nText::\n\n   .. class:: Heap(x)\n"
    assert as_text(source).endswith(f"\n{source}")
