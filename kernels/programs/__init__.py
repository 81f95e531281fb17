"""What all programs of one backend share: memory, launches, resources."""
