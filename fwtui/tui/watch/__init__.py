"""The user's kernel watched: judged at each save, and gone back to."""
