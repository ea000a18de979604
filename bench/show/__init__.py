"""Results for people: tables, plots, and the report of a run."""
