"""Acts that follow one another: a model of what hooks must note, and torch beside it."""
