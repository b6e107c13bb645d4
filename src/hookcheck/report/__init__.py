"""What it means: reports, drawn from records."""
