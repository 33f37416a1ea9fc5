"""What a run will take: work, time, memory, disk and network of each stage, and the age of the index. See `realmctl plan`."""
