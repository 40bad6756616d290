"""Makes a tokenizer.json from the vocabulary of a GGUF file, for large comparisons of the two.

Usage: python gguf_to_tokenizer_json.py FILE.gguf > tokenizer.json
The pipelines are those that the models themselves declare (Llama 2 and 3, Qwen2, SmolLM2, GPT-2,
GPT-NeoX); merges of SentencePiece models come from the scores, as transformers' converter makes
them. Then, for example:
  python pipelines.py --texts 10000 --file wiki.test.raw --tokenizer tokenizer.json > cases.json
  WANAMAKER_PIPELINE_CASES=cases.json wanamaker_text_tests
Written for gguf 0.19.0, tokenizers 0.23.3.
"""

import json
import sys

import gguf

import pipelines
import text as byte_level_texts

NFC = {"type": "NFC"}
DIGITS = {"type": "Digits", "individual_digits": True}
LLAMA3, QWEN2 = ([byte_level_texts.split(pattern), byte_level_texts.byte_level(False, False)]
                 for pattern in (byte_level_texts.LLAMA3, byte_level_texts.QWEN2))
WORDS = byte_level_texts.byte_level()
# name: normaliser, pre-tokenisers, ignore_merges
BYTE_LEVEL = {"gpt-2": (None, [WORDS], False), "olmo": (NFC, [WORDS], False),
              "smollm": (None, [DIGITS, WORDS], False), "starcoder": (None, [DIGITS, WORDS], False),
              "llama-bpe": (None, LLAMA3, True), "qwen2": (NFC, QWEN2, False)}


def merges_of_scores(tokens, scores):
    ids = {token: i for i, token in enumerate(tokens)}
    merges = []
    for token, score in zip(tokens, scores):
        cuts = [(token[:at], token[at:]) for at in range(1, len(token))]
        local = [cut for cut in cuts if cut[0] in ids and cut[1] in ids]
        merges += [(score, pair) for pair in sorted(local, key=lambda p: (ids[p[0]], ids[p[1]]))]
    return [list(pair) for _, pair in sorted(merges, key=lambda merge: -merge[0])]


def main():
    fields = gguf.GGUFReader(sys.argv[1]).fields
    get = lambda key, default=None: (fields["tokenizer.ggml." + key].contents()
                                     if "tokenizer.ggml." + key in fields else default)
    tokens, kinds = get("tokens"), get("token_type")
    added = [byte_level_texts.token(i, t, special=kinds[i] != 4) for i, t in enumerate(tokens)
             if kinds[i] in (2, 3, 4)]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
             "vocab": {t: i for i, t in enumerate(tokens)}}
    result = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
              "normalizer": None, "pre_tokenizer": None, "post_processor": None, "model": model}
    if get("model") == "llama":
        model |= {"unk_token": tokens[0], "fuse_unk": True, "byte_fallback": True,
                  "merges": merges_of_scores(tokens, get("scores")), "ignore_merges": False}
        llama = pipelines.variants(0, 0)["llama2"]
        result |= {"normalizer": llama["normalizer"], "decoder": llama["decoder"]}
    else:
        normalizer, steps, ignore = BYTE_LEVEL[get("pre", "olmo")]
        model |= {"merges": [merge.split(" ") for merge in get("merges")], "ignore_merges": ignore}
        result |= {"normalizer": normalizer, "pre_tokenizer": byte_level_texts.sequence(*steps),
                   "decoder": WORDS}
    print(json.dumps(result))


main()
