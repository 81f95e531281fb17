"""The place to learn: a small graph followed through a kernel's plan, its lesson and its source."""
