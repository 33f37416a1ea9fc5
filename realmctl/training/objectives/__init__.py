"""What each training stage minimises, one file each."""
