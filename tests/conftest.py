"""What all tests share."""

import torch

# Models here are small, and a process that is forked while PyTorch has threads of its own can hang.
torch.set_num_threads(1)
