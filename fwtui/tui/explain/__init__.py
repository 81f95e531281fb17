"""Why a run is as fast as it is."""
