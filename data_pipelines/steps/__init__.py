"""Labels for the steps of solutions, from rollouts, searches, a second judge, worked solutions or final rewards."""
