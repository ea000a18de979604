"""Results for people: tables, plots, and files of a run."""
