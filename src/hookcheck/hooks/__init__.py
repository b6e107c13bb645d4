"""Which hooks there are: one declaration a hook kind, by which the probe, scripts and benchmarks all register it."""
