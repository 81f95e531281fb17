"""The Explain screen: the limits of a run's speed."""
