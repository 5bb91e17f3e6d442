"""Losses over the tokens of a batch: each is one formula on tensors, with its gradient."""
