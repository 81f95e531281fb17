"""A kernel of the user's own watched: judged at each save, and gone back to."""
