"""Learn the small network over the multilingual sentence encoder (`learned/broad.py`). Needs torch.

A prompt counts by its strongest window, as for the tuned model; several networks that begin differently are
put side by side and averaged, which is again one network.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from firecircle.lab.datasets import Record
from firecircle.voices.embedded.learned.broad import Array, BroadReader
from firecircle.voices.embedded.learned.head import TAGS, windows
from training.labelled import is_attack

WIDTH, NETWORKS = 64, 3
EPOCHS, BATCH, RATE, DECAY, DROPPED = 8, 64, 3e-3, 0.1, 0.3
MOST_WINDOWS = 12
"""Windows of a prompt that are learned from."""


@dataclass(slots=True)
class Prompt:
    """A prompt while learning: its windows as the network is given them."""

    record: Record
    windows: Tensor


def read(records: Sequence[Record]) -> list[Prompt]:
    """Every prompt with its windows; one without a word has none and is left out."""
    reader = BroadReader(np.zeros((1, 1), np.float32), np.zeros(1, np.float32))
    prompts = []
    for record in records:
        texts, documents = [], []
        for layer in TAGS:
            text = str(getattr(record.prompt, layer))
            for window in windows(text, layer)[: 4 * MOST_WINDOWS]:
                texts.append(text[window.start : window.end])
                documents.append(layer == "application")
        if texts:
            prompts.append(Prompt(record, torch.tensor(reader.vectors(texts, documents))))
    return prompts


def train(prompts: Sequence[Prompt]) -> tuple[Array, Array]:
    """The weights of the hidden and of the last layer, offsets in the last row."""
    networks = [_network(prompts, seed) for seed in range(NETWORKS)]
    hidden = [_with_offset(first.weight.T, first.bias[None]) for first, _ in networks]
    last = [_with_offset(second.weight.T, second.bias[None]) / NETWORKS for _, second in networks]
    offset = np.sum([each[-1:] for each in last], 0)
    return np.hstack(hidden), np.vstack([*(each[:-1] for each in last), offset])[:, 0]


def averaged(trained: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Several networks side by side as one that says what they say on average."""
    share = 1 / len(trained)
    last = sum(read[-1:] for _, read in trained) * share
    return np.hstack([hidden for hidden, _ in trained]), np.concatenate(
        [*(read[:-1] * share for _, read in trained), last]
    )


def _with_offset(weight: Tensor, offset: Tensor) -> Array:
    return np.vstack([weight.detach().numpy(), offset.detach().numpy()])


def _network(prompts: Sequence[Prompt], seed: int) -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(seed)
    chance = random.Random(seed)
    first, second = nn.Linear(prompts[0].windows.shape[1], WIDTH), nn.Linear(WIDTH, 1)
    optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()], lr=RATE, weight_decay=DECAY)
    many = Counter((prompt.record.source, is_attack(prompt.record)) for prompt in prompts)
    weights = [many[prompt.record.source, is_attack(prompt.record)] ** -0.25 for prompt in prompts]
    mass = {True: 0.0, False: 0.0}
    for prompt, weight in zip(prompts, weights, strict=True):
        mass[is_attack(prompt.record)] += weight
    order = list(range(len(prompts)))
    for epoch in range(EPOCHS):
        chance.shuffle(order)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            rows = [prompts[at].windows[:MOST_WINDOWS] for at in batch]
            owner = torch.tensor([place for place, each in enumerate(rows) for _ in each])
            hidden = functional.relu(first(functional.dropout(torch.cat(rows), DROPPED)))
            scores = second(functional.dropout(hidden, DROPPED))[:, 0]
            worst = torch.full((len(batch),), -1e9).scatter_reduce(0, owner, scores, "amax")
            attack = [is_attack(prompts[at].record) for at in batch]
            share = [
                weights[at] * len(prompts) / 2 / mass[side] for at, side in zip(batch, attack, strict=True)
            ]
            label = torch.tensor([0.97 if side else 0.03 for side in attack])
            loss = functional.binary_cross_entropy_with_logits(worst, label, reduction="none")
            loss = (loss * torch.tensor(share)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - (epoch + 1) / EPOCHS) + 1e-5
    return first, second
