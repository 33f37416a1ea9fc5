"""`realmctl plan --rehearse N`: a run at toy scale in N processes and on a Ray cluster of this machine, with kills, compared with one process."""
