"""What happened: running a topology on torch without leaving a trace in the process."""
