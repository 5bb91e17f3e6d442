"""What rewards for training frameworks share; those of TRL, verl and others are `src/adjudge/trl.py`, `verl.py`, ..."""
