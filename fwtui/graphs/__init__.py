"""Graphs in, canonical distances out: generating, reading, bounding and comparing dense adjacency matrices."""
