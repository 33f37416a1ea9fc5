"""An index that scores an 8-bit copy of every row."""

OFFERS = {
    "realmctl.indexes": {
        "int8": "realmctl.extras.int8.int8_index:Int8IndexType",
    },
}
