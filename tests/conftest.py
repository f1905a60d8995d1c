"""What the tests share."""

pytest_plugins = ["plugin_required"]
