"""Salient spans: the taggers that find names and dates, and the tagged sentences that become queries."""
