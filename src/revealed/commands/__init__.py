"""The commands of `revealed`, one file each; `revealed.cli` gathers them. What is heavy is imported inside them."""
