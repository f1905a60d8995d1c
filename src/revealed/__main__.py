"""`python -m revealed` is `revealed`."""

from revealed.cli import app

app(prog_name="revealed")
