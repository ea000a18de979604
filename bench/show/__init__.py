"""Shows results as tables, plots, and files of a run."""
