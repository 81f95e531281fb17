"""What commands share: flags and what is made of them, words on stderr, and long work of the command line alone."""
