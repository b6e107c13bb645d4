"""What to file: one standalone script that shows a fault and needs torch alone."""
