"""Many runs as a map and as curves."""
