"""What each route of the server is built on: settings, the host's state, bodies read within limits, errors, log."""
