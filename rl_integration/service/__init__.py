"""The reward service: many scorers behind one address, with queues, batches, deadlines and fairness."""
