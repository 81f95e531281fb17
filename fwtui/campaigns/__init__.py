"""Many runs: sweeps, and the experiments of published documents."""
