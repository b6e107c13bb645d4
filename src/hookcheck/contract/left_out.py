"""Which documented sentences about hooks have no clause, and why? By the id that a clause of it would have."""

LEFT_OUT: dict[str, str] = {
    "U-20": "one clause for each way to transform a module: TF-02, TF-03, TF-05, TF-06, TF-07, TR-05, TR-06, TR-07",
}
