"""Which prompts are trained on, how many answers each gets, and which of those are learnt from.

`choice` names them, `sources` draw tasks, `filters` leave answers out or ask for more, `improvers` and `hints` help.
Without any, `adjudge.rl_integration.trainer.data.task.TaskOrder` says which task comes next.
"""
