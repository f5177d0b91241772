"""A module of torch whose printed graph reads much of it, for tests that have torch."""
from __future__ import annotations

import torch


class Net(torch.nn.Module):
    """Convolution, statistics, dropout, a recurrent layer, a number."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(2, 3, 1)
        self.norm = torch.nn.BatchNorm1d(3)
        self.drop = torch.nn.Dropout()
        self.lstm = torch.nn.LSTM(3, 4, 2, bidirectional=True)
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The recurrent layer's outputs, scaled."""
        return self.lstm(self.drop(self.norm(self.conv(x))).permute(2, 0, 1))[0] * self.scale
