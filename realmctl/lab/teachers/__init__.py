"""A cross-encoder teaches the retriever that `adapt` makes: GPL (Wang et al., NAACL 2022) within minutes, with or without written questions.

Why it is here: the ways known to gain more than contrast have a teacher. Whether this one gains is measured by examples/teacher, and it goes if it does not.
"""

OFFERS = {
    "realmctl.stages": {
        "cut-queries": "realmctl.lab.teachers.cut_queries:CutQueries",
    },
    "realmctl.options.adapt": {
        "teachers": "realmctl.lab.teachers.options:TeacherOptions",
    },
}
