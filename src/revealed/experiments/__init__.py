"""The paper's experiments: one file per figure or table, with a frozen config, `run()` and `draw()`.

`protocol` has the paper's sentences: what each method sees, the claims and the rules that decide. `readings` picks from
the stored rows what one reading of the paper sees, `claims` judge it, `verdicts` put both readings together, and the
`specification_*` files do the same over the choices that the paper leaves open.
"""
