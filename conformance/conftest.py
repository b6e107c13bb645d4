"""The suite runs through hookcheck's pytest plugin, which draws up the plan and keeps the record."""

pytest_plugins = ["hookcheck.run.plugin"]
