"""The one place where concrete things are chosen and joined: a file for each way to run."""
