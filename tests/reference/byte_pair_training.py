"""Records the merges that the package tokenizers trains, for tests/text.

Usage: python byte_pair_training.py > byte_pair_training.json            (what is in the repository)
       python byte_pair_training.py --file TEXT --size N > trained.json  (the same for any text)
The test reads the file that the environment variable WANAMAKER_TRAINED_TOKENIZER names as well.
       python byte_pair_training.py --load tokenizer.json --texts TEXTS.json
checks a written tokenizer.json: TEXTS.json is [[text, ids], …].
Recorded with tokenizers 0.23.3.
"""

import argparse
import json

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

TEXTS = [
    "The lamp is lit, and the keeper's daughter won't leave the tower; they're waiting there.\n\n"
    "They waited the whole of the night. In 1984 and 1985, 365 days of rain fell on the harbour.\n",
    "aaaa aaaaa aaaaaa aaa aa a abababab ababab bababa abcabcabc bcabcabca cabcab\n"
    "    indented\n    indented again\n\n\n\tand tabs\t\t\n",
    "Übung macht den Meister, Übung über Übung. Москва и река, река и море. 你好，世界，你好。\n",
    "the the the and and there there keeper keeper's waiting waited wait waits the tower towers\n",
]


def train(texts, size, least_count, special):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=least_count, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    ids = {i: token for token, i in model["vocab"].items()}
    return {"size": size, "least_count": least_count, "special_tokens": special,
            "merges": [" ".join(merge) for merge in model["merges"]],
            "alphabet": "".join(ids[i] for i in range(len(special), len(special) + 256)),
            "vocabulary_size": len(ids),
            "encoded": [tokenizer.encode(text).ids for text in texts[:4]] if len(texts) <= 4 else []}


def check(path, texts):
    tokenizer = tokenizers.Tokenizer.from_file(path)
    for text, ids in json.load(open(texts)):
        assert tokenizer.encode(text).ids == ids, text
        assert tokenizer.decode(ids) == text, text
    print("equal")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--load")
    parser.add_argument("--texts")
    arguments = parser.parse_args()
    if arguments.load:
        return check(arguments.load, arguments.texts)
    if arguments.file:
        texts = [open(arguments.file, encoding="utf-8", newline="").read()]
        trained = train(texts, arguments.size, 2, ["<|endoftext|>"])
        trained.update(file=arguments.file, encoded=[])
        return print(json.dumps(trained))
    runs = [train(TEXTS, 330, 2, ["<|endoftext|>"]), train(TEXTS, 600, 1, []),
            train(TEXTS, 270, 3, ["<|a|>", "<|b|>"])]
    print(json.dumps({"texts": TEXTS, "runs": runs}))


main()
