"""Tune the sentence model of the neural voice: rank-8 changes (LoRA) of its upper half, and a head over it.

Learned on windows: each window of a prompt is read with the name of its layer and the beginning of what it
relates to, and a prompt counts by its strongest window. Half of the prompts are shown with the system text of
another, or none, because otherwise the mere presence of one tells the label. Needs torch; `training.neural`
is the command.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from firecircle.lab.datasets import Record
from firecircle.voices.embedded.language.text import sentences
from firecircle.voices.embedded.learned.encoder import (
    HEADS,
    LAYERS,
    WIDTH,
    Array,
    Encoder,
    read_weights,
    weights_folder,
)
from firecircle.voices.embedded.learned.head import Head, Input, Inputs, Window, fingerprint
from firecircle.voices.embedded.learned.ngrams import shipped_model
from training.labelled import POLICY, TYPES, is_attack, span_of, type_of

PARTS = (
    *("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
    *("intermediate.dense", "output.dense"),
)
"""The matrices of a layer that are changed."""
RANK, SCALE = 8, 2.0
EPOCHS, BATCH, RATE = 2, 24, 2e-3
CONTINUED_RATE = 1e-3
"""The rate of an epoch that goes on from kept changes, with data that they have not seen."""
TYPED = 0.3
"""How much naming the type of an attack counts beside finding it."""
FROZEN = 3
"""Layers from below that stay as they are."""
MOST_WINDOWS = 4
"""Windows of a prompt that are learned from."""
SWAPPED = 0.5
"""How often a prompt is shown with the system text of another, or none."""
DROPPED = 0.1


class Low(nn.Module):
    """A frozen matrix with a low-rank change."""

    def __init__(self, weight: Tensor, bias: Tensor, tuned: bool) -> None:
        super().__init__()
        self.register_buffer("weight", weight.to(torch.bfloat16))
        self.register_buffer("bias", bias.to(torch.bfloat16))
        self.tuned = tuned
        if tuned:
            self.a = nn.Parameter(torch.randn(RANK, weight.shape[1]) / math.sqrt(weight.shape[1]))
            self.b = nn.Parameter(torch.zeros(weight.shape[0], RANK))

    def start_from(self, a: Array, b: Array) -> None:
        """Go on from a change that was kept."""
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float32))
        self.b = nn.Parameter(torch.tensor(b, dtype=torch.float32) / SCALE)

    def forward(self, x: Tensor) -> Tensor:
        """The rows times the changed matrix."""
        y = functional.linear(x, self.weight, self.bias)
        if self.tuned:
            change = functional.linear(x, self.a.to(x.dtype))
            y = y + SCALE * functional.linear(change, self.b.to(x.dtype))
        return y


class Layer(nn.Module):
    """One transformer layer."""

    def __init__(self, weights: dict[str, Tensor], number: int) -> None:
        super().__init__()
        name, tuned = f"encoder.layer.{number}.", number >= FROZEN
        for part in PARTS:
            low = Low(weights[f"{name}{part}.weight"], weights[f"{name}{part}.bias"], tuned)
            setattr(self, part.replace(".", "_"), low)
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            for kind in ("weight", "bias"):
                self.register_buffer(f"{norm}.{kind}".replace(".", "_"), weights[f"{name}{norm}.{kind}"])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The rows after the layer; where the mask is false nothing is attended to."""
        count, length, _ = x.shape

        def heads(y: Tensor) -> Tensor:
            return y.view(count, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        query, key, value = (
            heads(getattr(self, f"attention_self_{kind}")(x)) for kind in ("query", "key", "value")
        )
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        merged = self.attention_output_dense(context.transpose(1, 2).reshape(count, length, WIDTH))
        x = self._norm("attention_output_LayerNorm", merged + x)
        wide = functional.gelu(self.intermediate_dense(x), approximate="tanh")
        return self._norm("output_LayerNorm", self.output_dense(wide) + x)

    def _norm(self, name: str, x: Tensor) -> Tensor:
        scale, shift = getattr(self, f"{name}_weight"), getattr(self, f"{name}_bias")
        return functional.layer_norm(x.float(), (WIDTH,), scale, shift, 1e-12).to(torch.bfloat16)


class Tuned(nn.Module):
    """The sentence model with its changes and the head."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.register_buffer("lookup", weights["embeddings.word_embeddings.weight"])
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        self.register_buffer("places", weights["embeddings.position_embeddings.weight"] + kind)
        self.register_buffer("norm_weight", weights["embeddings.LayerNorm.weight"])
        self.register_buffer("norm_bias", weights["embeddings.LayerNorm.bias"])
        self.layers = nn.ModuleList([Layer(weights, number) for number in range(LAYERS)])
        self.head = nn.Linear(2 * WIDTH, 1)
        self.types = nn.Linear(2 * WIDTH, len(TYPES))
        self.skim = nn.Linear(WIDTH, 1)

    def forget(self) -> None:
        """Begin anew."""
        for module in self.modules():
            if isinstance(module, Low) and module.tuned:
                nn.init.normal_(module.a, std=module.a.shape[1] ** -0.5)
                nn.init.zeros_(module.b)
        for linear in (self.head, self.types, self.skim):
            linear.reset_parameters()

    def start_from(self, head: Head) -> None:
        """Go on from a head that was kept."""
        self.forget()
        for number, layer in enumerate(self.layers):
            for part in PARTS:
                low, name = getattr(layer, part.replace(".", "_")), f"encoder.layer.{number}.{part}"
                if low.tuned:
                    low.start_from(head.changes[f"{name}.a"], head.changes[f"{name}.b"])
        for linear, kept in ((self.head, head.read), (self.skim, head.skim)):
            linear.weight.data = torch.tensor(kept[None, :-1])
            linear.bias.data = torch.tensor(kept[-1:])

    @torch.no_grad()
    def halves(self, inputs: Sequence[Input]) -> list[Half]:
        """The windows after the frozen layers."""
        order = sorted(range(len(inputs)), key=lambda at: len(inputs[at].pieces))
        done: dict[int, Half] = {}
        for start in range(0, len(order), 64):
            part = order[start : start + 64]
            length = len(inputs[part[-1]].pieces)
            pieces = torch.zeros(len(part), length, dtype=torch.long)
            for row, at in enumerate(part):
                pieces[row, : len(inputs[at].pieces)] = torch.tensor(inputs[at].pieces)
            mask = torch.tensor([len(inputs[at].pieces) for at in part])[:, None] > torch.arange(length)
            embedded = functional.layer_norm(
                self.lookup[pieces] + self.places[:length], (WIDTH,), self.norm_weight, self.norm_bias, 1e-12
            )
            x = embedded.to(torch.bfloat16)
            for layer in self.layers[:FROZEN]:
                x = layer(x, mask[:, None, None, :])
            for row, at in enumerate(part):
                own = inputs[at].own
                words = functional.normalize(embedded[row, :own].mean(0), dim=0)
                done[at] = Half(x[row, : len(inputs[at].pieces)].clone(), own, words)
        return [done[at] for at in range(len(inputs))]

    def scores(self, halves: Sequence[Half]) -> tuple[Tensor, Tensor, Tensor]:
        """The score of each window when it is read, those of the types, and the one when it is skimmed.

        Windows of like length go together, so that little is padding.
        """
        order = sorted(range(len(halves)), key=lambda at: len(halves[at].rows))
        read, types = [], []
        for start in range(0, len(order), 16):
            part = [halves[at] for at in order[start : start + 16]]
            x = nn.utils.rnn.pad_sequence([half.rows for half in part], batch_first=True)
            places = torch.arange(x.shape[1])
            mask = torch.tensor([len(half.rows) for half in part])[:, None] > places
            for layer in self.layers[FROZEN:]:
                x = layer(x, mask[:, None, None, :])
            own = (torch.tensor([half.own for half in part])[:, None] > places).float()
            x = x.float()
            mean = (x * own[:, :, None]).sum(1) / own.sum(1, keepdim=True)
            seen = functional.dropout(torch.cat([mean, x[:, 0]], 1), DROPPED, self.training)
            read.append(self.head(seen)[:, 0])
            types.append(self.types(seen))
        back = torch.tensor(sorted(range(len(order)), key=order.__getitem__))
        skimmed = self.skim(torch.stack([half.words for half in halves]))[:, 0]
        return torch.cat(read)[back], torch.cat(types)[back], skimmed


class Half(NamedTuple):
    """A window after the frozen layers: rows of its pieces, how many are its own, its skimmed words."""

    rows: Tensor
    own: int
    words: Tensor


@dataclass(slots=True)
class Bag:
    """A prompt while learning."""

    record: Record
    windows: list[Half]

    @property
    def attack(self) -> bool:
        """Whether it is an attack."""
        return is_attack(self.record)


def bags_of(records: Sequence[Record], model: Tuned, encoder: Encoder) -> list[Bag]:
    """Every prompt through the frozen layers, once for all folds; some with the system text of another."""
    chance = random.Random(1)
    systems = [""] * (len(records) // 2) + [
        record.prompt.system for record in records if record.prompt.system
    ]
    inputs: list[Input] = []
    counts = []
    for record in records:
        prompt = record.prompt
        if chance.random() < SWAPPED and record.family not in POLICY:
            prompt = prompt.model_copy(update={"system": chance.choice(systems)})
        prompt_inputs = Inputs(prompt, encoder)
        chosen = _worth_learning(record, prompt_inputs.windows, chance)
        counts.append(len(chosen))
        inputs += map(prompt_inputs.input, chosen)
    halves = iter(model.halves(inputs))
    bags = [Bag(record, list(islice(halves, count))) for record, count in zip(records, counts, strict=True)]
    return [bag for bag in bags if bag.windows]


def _worth_learning(record: Record, windows: Sequence[Window], chance: random.Random) -> list[Window]:
    """All windows; of a long prompt those whose n-grams look worst, and some others.

    Of an attack whose words are marked, those that hold them.
    """
    marked = span_of(record)
    if marked and (held := [window for window in windows if window.touches(*marked)]):
        return held[:MOST_WINDOWS]
    if len(windows) <= MOST_WINDOWS:
        return list(windows)
    statistical = shipped_model()

    def suspicion(at: int) -> float:
        window = windows[at]
        text = str(getattr(record.prompt, window.layer))[window.start : window.end]
        read = sentences(text, window.layer)
        return statistical.probability(read) if read else 0.0

    worst = sorted(range(len(windows)), key=suspicion, reverse=True)
    half = MOST_WINDOWS // 2
    return [windows[at] for at in (*worst[:half], *chance.sample(worst[half:], MOST_WINDOWS - half))]


def train(bags: Sequence[Bag], seed: int, model: Tuned, kept: Head | None = None) -> Tuned:
    """The model, learned from these prompts: from the beginning, or one epoch more from a head."""
    torch.manual_seed(seed)
    chance = random.Random(seed)
    if kept is None:
        model.forget()
    else:
        model.start_from(kept)
    epochs, rate = (EPOCHS, RATE) if kept is None else (1, CONTINUED_RATE)
    many = Counter((bag.record.source, bag.attack) for bag in bags)
    weight = {id(bag): many[bag.record.source, bag.attack] ** -0.25 for bag in bags}
    mass = {side: sum(weight[id(bag)] for bag in bags if bag.attack is side) for side in (True, False)}
    tuned = [p for name, p in model.named_parameters() if not name.startswith(("head", "types", "skim"))]
    groups = [
        {"params": tuned, "lr": rate, "weight_decay": 0.01},
        {
            "params": [
                parameter
                for linear in (model.head, model.types, model.skim)
                for parameter in linear.parameters()
            ],
            "lr": rate,
            "weight_decay": 0.01,
        },
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98))
    steps = epochs * math.ceil(len(bags) / BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (0.1 * steps), max(0.02, (steps - step) / (0.9 * steps)))
    )
    model.train()
    started, step = time.process_time(), 0
    order = list(bags)
    for _ in range(epochs):
        chance.shuffle(order)
        total = 0.0
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            halves, owner = [], []
            for at, bag in enumerate(batch):
                halves += bag.windows
                owner += [at] * len(bag.windows)
            scores, types, skimmed = model.scores(halves)
            loss = torch.zeros(())
            for at, bag in enumerate(batch):
                rows = [row for row, whose in enumerate(owner) if whose == at]
                mine, cheap = scores[rows], skimmed[rows]
                strongest = int(mine.argmax())
                label = torch.full((), 0.97 if bag.attack else 0.03)
                lost = functional.binary_cross_entropy_with_logits(mine[strongest], label)
                if not bag.attack:
                    every = functional.binary_cross_entropy_with_logits(mine, label.expand(len(rows)))
                    lost = 0.7 * lost + 0.3 * every
                if (kind := type_of(bag.record)) is not None:
                    named = functional.cross_entropy(types[rows[strongest]], torch.tensor(TYPES.index(kind)))
                    lost = lost + TYPED * named
                skim = cheap[strongest] if bag.attack else cheap.mean()
                lost = lost + functional.binary_cross_entropy_with_logits(skim, label)
                loss = loss + weight[id(bag)] * len(bags) / 2 / mass[bag.attack] * lost
            loss = loss / len(batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            total += float(loss.detach())
            if step % 20 == 0:
                spent = time.process_time() - started
                print(
                    f"  step {step} of {steps}: loss {total / (start // BATCH + 1):.3f}, {spent:.0f} s",
                    flush=True,
                )
    return model.eval()


def numbers_of(model: Tuned) -> dict[str, Any]:
    """What was learned, as the voice reads it; the changes in half precision."""
    changes = {}
    for number, layer in enumerate(model.layers):
        for part in PARTS:
            low = getattr(layer, part.replace(".", "_"))
            if low.tuned:
                name = f"encoder.layer.{number}.{part}"
                changes[f"{name}.a"] = low.a.detach().numpy().astype(np.float16)
                changes[f"{name}.b"] = (SCALE * low.b).detach().numpy().astype(np.float16)

    def flat(linear: nn.Linear) -> np.ndarray:
        return np.append(linear.weight.detach().numpy()[0], linear.bias.detach().numpy()).astype(np.float32)

    folder = weights_folder()
    assert folder is not None
    tuned = {name: each.astype(np.float32) for name, each in changes.items()}
    return {
        "changes": changes,
        "skim": flat(model.skim),
        "read": flat(model.head),
        "fingerprint": fingerprint(Encoder(folder, tuned)),
    }


def untuned() -> tuple[Tuned, Encoder]:
    """The sentence model as it comes, to be tuned, and as the voice reads with it."""
    folder = weights_folder()
    assert folder is not None, "firecircle local fetch neural"
    weights = read_weights(folder / "model.safetensors")
    model = Tuned({name: torch.tensor(np.array(each)) for name, each in weights.items()})
    return model, Encoder(folder)
