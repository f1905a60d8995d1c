"""One file per figure or table of the paper: a frozen config, `run()` and `draw()`."""
