"""What is right: forward, backward sweep and expectations in NumPy float64; nothing here imports torch."""
