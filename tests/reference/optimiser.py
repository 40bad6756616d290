"""Records a run of PyTorch's AdamW with clipping and a schedule, for tests/train.

Usage: python optimiser.py > optimiser.json
Logistic regression with three classes, in double, from data and weights given by formulas that the
test repeats. Recorded with torch 2.15.0.
"""

import json
import math

import torch

SAMPLES, INPUTS, CLASSES, STEPS = 40, 6, 3, 50
RULE = {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.2}
SCHEDULE = {"peak": 0.05, "warm_up": 5, "steps": 45, "floor": 0.1}
LARGEST_NORM = 0.25


def rate(step):
    warm_up, steps, floor = SCHEDULE["warm_up"], SCHEDULE["steps"], SCHEDULE["floor"]
    if step < warm_up:
        return (step + 1) / warm_up
    if step >= steps:
        return floor
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up)))


def main():
    torch.set_default_dtype(torch.float64)
    x = torch.tensor([[math.sin(1.7 * i + 0.9 * j * j) for j in range(INPUTS)] for i in range(SAMPLES)])
    y = torch.tensor([(7 * i + i * i // 5) % CLASSES for i in range(SAMPLES)])
    weight = torch.tensor([[0.3 * math.cos(i + 2 * j) for j in range(CLASSES)] for i in range(INPUTS)],
                          requires_grad=True)
    bias = torch.tensor([0.1 * j for j in range(CLASSES)], requires_grad=True)
    optimiser = torch.optim.AdamW(
        [{"params": [weight], "weight_decay": RULE["decay"]}, {"params": [bias], "weight_decay": 0.0}],
        lr=SCHEDULE["peak"], betas=(RULE["beta1"], RULE["beta2"]), eps=RULE["epsilon"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    record = {"rule": RULE, "schedule": SCHEDULE, "largest_norm": LARGEST_NORM, "losses": [], "norms": [],
              "rates": [], "weights": {}}
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(x @ weight + bias, y)
        loss.backward()
        record["losses"].append(loss.item())
        record["norms"].append(torch.nn.utils.clip_grad_norm_([weight, bias], LARGEST_NORM).item())
        record["rates"].append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
        if step + 1 in (1, 10, STEPS):
            record["weights"][str(step + 1)] = weight.detach().flatten().tolist() + bias.detach().tolist()
    print(json.dumps(record))


main()
