"""What is run: the data model, layers, families, the corpus; its PyTorch source, and building it."""
