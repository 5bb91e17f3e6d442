"""What all parts of the trainer know: tasks, rollouts, arrays, and checks of options."""
