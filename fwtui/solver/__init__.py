"""Answers: a graph in, shortest distances and paths out."""
