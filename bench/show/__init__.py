"""Shows results to people: tables, plots, and files of a run."""
