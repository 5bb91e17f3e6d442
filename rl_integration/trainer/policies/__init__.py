"""The model that writes and learns, and its tokens as tensors."""
