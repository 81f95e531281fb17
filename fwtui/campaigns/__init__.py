"""Many runs: benchmarks, tuning, sweeps, and the experiments of published documents."""
