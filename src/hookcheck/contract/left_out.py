"""Which documented sentences about hooks have no clause, and why? By the id that a clause of it would have."""

LEFT_OUT: dict[str, str] = {
    "U-20": "one clause for each way to transform a module: U-20-functional-call, U-20-vmap, U-20-grad, U-20-jacrev, "
    "U-20-saved-tensors, U-20-trace, U-20-fx, U-20-export",
}
