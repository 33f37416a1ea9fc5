"""Files from outside, opened and read row by row: compressed streams, tables, JSON lines, Parquet and Arrow."""
