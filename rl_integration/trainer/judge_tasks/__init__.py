"""Tasks for judges and verifiers: policies whose verdicts can be checked."""
