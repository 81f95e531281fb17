"""Lund and Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, 2010."""
