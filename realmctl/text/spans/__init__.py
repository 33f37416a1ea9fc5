"""Salient spans: names and dates, who finds them, and the sentences that become queries."""
