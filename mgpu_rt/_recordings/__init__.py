"""Recordings of launches: their folders, the hook that records, the replay and the comparison."""
