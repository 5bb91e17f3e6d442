"""Which prompts are trained on, how many answers each gets, and which of those are learnt from.

`choice` names them, `sources` draw tasks, `rounds` add answers, `filters` leave some out, `improvers` help.
Without any, `adjudge.rl_integration.trainer.data.task.TaskOrder` says which task comes next.
"""
