"""What commands share: flags and their values, words on stderr, and the long work of single commands."""
