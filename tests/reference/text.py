"""Records what the Python packages tokenizers and unicodedata give, for tests/text.

Usage: python text.py > text.json                        (what is in the repository)
       python text.py --texts 10000 [--folder FOLDER]… > cases.json
The second form makes many more texts, also for the tokenizer.json in each folder; the tests read
the file that the environment variable WANAMAKER_TOKENIZER_CASES names.
Recorded with tokenizers 0.23.3, Python 3.11.7 (unicodedata 14.0.0).
"""

import argparse
import json
import pathlib
import random
import unicodedata

import tokenizers

SENTENCES = [
    "The lamp is lit, and the keeper's daughter won't leave the tower; they're waiting there.",
    "In 1984 and 2024, 365 days of rain fell on the harbour. I'll say we've seen 42 storms.",
    "def encode(text):\n    for word in split(text):\n        yield word\n\n",
    "Übung macht den Meister, naïve café, déjà vu, garçon, año nuevo, smørrebrød.",
    "Москва и Санкт-Петербург, река и море. Ελληνικά και λατινικά γράμματα.",
    "你好，世界。日本語のテキスト、カタカナ。한국어 문장입니다. שלום עולם مرحبا بالعالم",
    "the the the and and and there there harbour harbour waiting waiting keeper keeper",
]

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

POOLS = [
    list("abcdefghijklmnopqrstuvwxyzABCXYZ"),
    [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u2003", "\u3000", "\u0085",
     "\u180e", "\u200b", "\u2028", "\v", "\f", "\x1c", "\ufeff", " " * 20, " " * 30],
    ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'", "''", "'r", "'l", "\u2019s", "'\u017f"],
    list("0123456789") + ["\u00b2", "\u0663", "\u2167", "\u00bd", "\u4e09", "\U0001d7d8"],
    list(".,;:!?-_()[]{}<>|@#$%^&*+=~`\"\\/"),
    list("àéîõüßñçøåœŐž") + list("жщыэюяґї") + list("αβγάώΐ") + list("你好世界日本語") + list("한국어") +
    list("שלוםمرحبا") + list("हिन्दी") + list("ไทย"),
    ["\u0301", "\u0300", "\u0323", "\u0327", "\u0345", "\u0338", "\u3099", "\u05b0", "\u0e38", "\u0f71",
     "\u0344", "\u1100", "\u1161", "\u11a8", "\u0958", "\u212b", "\u2126", "\u037e", "\ufb1d", "\uf900",
     "\u2000", "\u1e9b\u0323", "e\u0323\u0301", "A\u030a"],
    ["😀", "👩\u200d👧", "🇩🇪", "☃", "\ufffd", "\u00ad", "\0", "\x7f", "\u20ac", "\ue000"],
    ["<|endoftext|>", "<|pad|>", "<|endoftext", "[X]", "[XY]", "[L]", "[R]", "[LR]", "[W]", "[N\u00e9]",
     "[Ne\u0301]", "the keeper"],
    SENTENCES[0].split() + [" " + w for w in SENTENCES[0].split()],
]


def is_known(c):
    """Whether tokenizers' tables, of an older Unicode, have the character: its forms and its place among marks."""
    peers = {"NFC": tokenizers.normalizers.NFC(), "NFKC": tokenizers.normalizers.NFKC()}
    return unicodedata.category(c) not in ("Cn", "Cs") and all(
        peer.normalize_str(text) == unicodedata.normalize(form, text)
        for form, peer in peers.items() for text in (c, "a\u0301" + c, "a" + c + "\u0323"))


def assigned_character(generator):
    while True:
        c = chr(generator.randrange(0x110000))
        if is_known(c):
            return c


def random_text(generator, longest):
    pools = generator.sample(POOLS, generator.randint(1, 4))
    text = ""
    for _ in range(generator.randint(1, longest)):
        pick = generator.random()
        text += assigned_character(generator) if pick < 0.05 else generator.choice(generator.choice(pools))
    return text


def token(id, content, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False} | flags


def trained_model():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, min_frequency=1, show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return json.loads(tokenizer.to_str())["model"]


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def byte_level(add_prefix_space=False, use_regex=True):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True,
            "use_regex": use_regex}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def variants(first_id):
    """Everything of a tokenizer.json but its model."""
    end = token(first_id, "<|endoftext|>", special=True)
    spaces = [token(first_id + n - 1, " " * n, normalized=True) for n in range(2, 25)]
    flagged = [
        token(first_id, "[X]"), token(first_id + 1, "[XY]"), token(first_id + 2, "[L]", lstrip=True),
        token(first_id + 3, "[R]", rstrip=True), token(first_id + 4, "[LR]", lstrip=True, rstrip=True),
        token(first_id + 5, "[W]", single_word=True), token(first_id + 6, "[Ne\u0301]", normalized=True),
        token(first_id + 7, "the keeper", single_word=True, lstrip=True, normalized=True),
        token(first_id + 8, "  ", normalized=True, rstrip=True)]
    nfc = {"type": "NFC"}
    return {
        "gpt2": dict(added_tokens=[end], normalizer=None, pre_tokenizer=byte_level()),
        "neox": dict(added_tokens=[end] + spaces, normalizer=nfc, pre_tokenizer=byte_level()),
        "prefix": dict(added_tokens=[end], normalizer=None, pre_tokenizer=byte_level(True)),
        "llama3": dict(added_tokens=[end], normalizer=None,
                       pre_tokenizer=sequence(split(LLAMA3), byte_level(False, False))),
        "qwen2": dict(added_tokens=[end], normalizer={"type": "Sequence", "normalizers": [nfc]},
                      pre_tokenizer=sequence(split(QWEN2), byte_level(False, False))),
        "smollm": dict(added_tokens=[end], normalizer=None, pre_tokenizer=sequence(
            {"type": "Digits", "individual_digits": True}, byte_level())),
        "digits": dict(added_tokens=[end], normalizer=None, pre_tokenizer=sequence(
            {"type": "Digits", "individual_digits": False}, byte_level(True))),
        "flags": dict(added_tokens=flagged, normalizer=nfc, pre_tokenizer=byte_level()),
    }


def complete(variant, model):
    return {"version": "1.0", "truncation": None, "padding": None, "post_processor": None,
            "decoder": byte_level(), "model": model} | variant


def recorded(texts_wanted, longest, folders, seed):
    generator = random.Random(seed)
    texts = [random_text(generator, longest) for _ in range(texts_wanted)]
    model = trained_model()
    result = {"model": model, "variants": variants(len(model["vocab"])), "texts": texts, "ids": {},
              "nfc": [unicodedata.normalize("NFC", text) for text in texts], "folders": {}}
    result["variants"]["llama3"]["ignore_merges"] = True
    for name, variant in result["variants"].items():
        settings = dict(model, ignore_merges=variant.pop("ignore_merges", False))
        variant["ignore_merges"] = settings["ignore_merges"]
        parts = {key: value for key, value in variant.items() if key != "ignore_merges"}
        peer = tokenizers.Tokenizer.from_str(json.dumps(complete(parts, settings)))
        result["ids"][name] = [peer.encode(text).ids for text in texts]
    for folder in folders:
        peer = tokenizers.Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
        result["folders"][str(folder)] = [peer.encode(text).ids for text in texts]
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=120)
    parser.add_argument("--longest", type=int, default=12)
    parser.add_argument("--folder", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    result = recorded(options.texts, options.longest, options.folder, options.seed)
    print(json.dumps(result, separators=(",", ":")))


if __name__ == "__main__":
    main()
