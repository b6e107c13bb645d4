"""Other people's models and tests: what hookcheck offers to code that is not its own."""
