"""Records the losses of 200 steps of training a tiny GPT-2 with transformers, for tests/train.

Usage: python training_curve.py > training_curve.json
In double; weights, tokens and windows are given by formulas that the test repeats.
Recorded with torch 2.15.0, transformers 5.24.0.
"""

import json
import math

import torch
import transformers

WIDTH, LAYERS, HEADS, VOCABULARY, WINDOW, SEQUENCES, STEPS = 32, 2, 2, 64, 32, 4, 200
RULE = {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "decay": 0.1}
PEAK, WARM_UP, FLOOR, LARGEST_NORM = 5e-3, 20, 0.1, 1.0
TOKENS = 4000


def mixed(n):
    """32 bits that look random, of a number."""
    n = (n * 2654435761 + 12345) & 0xFFFFFFFF
    n ^= n >> 15
    n = (n * 2246822519) & 0xFFFFFFFF
    return n ^ (n >> 13)


def tokens():
    result = [0]
    for i in range(1, TOKENS):
        result.append((5 * result[-1] + 3 + mixed(i) % 3) % VOCABULARY)
    return result


def weights(number, shape):
    count = math.prod(shape)
    values = [0.08 * (mixed(100000 * (number + 1) + i) / 2**32 - 0.5) for i in range(count)]
    return torch.tensor(values).reshape(shape)


def rate(step):
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / (STEPS - WARM_UP)))


def main():
    torch.set_default_dtype(torch.float64)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=WINDOW, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager"))
    model.train()
    groups = {True: [], False: []}
    number = 0
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            if parameter.dim() > 1:
                parameter.copy_(weights(number, parameter.shape))
                number += 1
            else:
                parameter.fill_(1.0 if "ln_" in name and name.endswith("weight") else 0.0)
        groups[parameter.dim() > 1].append(parameter)
    optimiser = torch.optim.AdamW(
        [{"params": groups[True], "weight_decay": RULE["decay"]}, {"params": groups[False], "weight_decay": 0.0}],
        lr=PEAK, betas=(RULE["beta1"], RULE["beta2"]), eps=RULE["epsilon"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    text = tokens()
    losses = []
    for step in range(STEPS):
        begins = [mixed(7 * step + s) % (TOKENS - WINDOW) for s in range(SEQUENCES)]
        x = torch.tensor([text[b:b + WINDOW] for b in begins])
        y = torch.tensor([text[b + 1:b + WINDOW + 1] for b in begins])
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x).logits.flatten(0, 1), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
        optimiser.step()
        schedule.step()
        losses.append(round(loss.item(), 12))
    print(json.dumps({"losses": losses}))


main()
