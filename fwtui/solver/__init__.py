"""Answers: anybody's graph in, shortest distances and paths out."""
