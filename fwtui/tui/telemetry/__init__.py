"""What the GPU did, over time."""
