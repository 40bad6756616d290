"""Records what the Python packages tokenizers and sentencepiece give, for tests/text/pipeline_test.cpp:
models of characters, every step of a declared pipeline, templates, decoding, GGUF's vocabularies.

Usage: python pipelines.py > pipelines.json              (what is in the repository)
       python pipelines.py --texts 10000 [--file TEXT] [--tokenizer tokenizer.json]… > cases.json
The second form makes many more texts, and adds a file's lines and whole tokenizers; the tests read
the file that the environment variable WANAMAKER_PIPELINE_CASES names.
Recorded with tokenizers 0.23.3, sentencepiece 0.2.3, Python 3.11.7.
"""

import argparse
import io
import json
import pathlib
import random

import sentencepiece
import tokenizers

import text as byte_level_texts

MARK = "\u2581"
SENTENCES = byte_level_texts.SENTENCES
POOLS = byte_level_texts.POOLS + [
    [MARK, MARK * 2, " " + MARK, "<s>", "</s>", "<unk>", "<0x41>", "<0x4", "ﬁ", "①", "ｶﾞ", "İ", "ΑΣ", "Å"],
    ["[n]", " [n] ", "[l]", "a[w]b", " [w] ", "keeper", "é"]]


def random_text(generator, longest):
    pools = generator.sample(POOLS, generator.randint(1, 4))
    text = ""
    for _ in range(generator.randint(0, longest)):
        text += (byte_level_texts.assigned_character(generator) if generator.random() < 0.05
                 else generator.choice(generator.choice(pools)))
    return text


def character_model():
    """<unk> <s> </s>, the 256 bytes, then characters and merges, as Llama 2 has them."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=640, min_frequency=1, show_progress=False,
                                             special_tokens=special)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return json.loads(tokenizer.to_str())["model"]


def literal(text):
    return {"String": text}


def regex(text):
    return {"Regex": text}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def normalizers(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split}


def split(pattern, behavior, invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def then_bytes(*steps):
    return byte_level_texts.sequence(*steps, byte_level_texts.byte_level(False, False))


def template(begin, end):
    part = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    ids = {"<s>": 1, "</s>": 2}
    return {"type": "TemplateProcessing",
            "single": [part(t) for t in begin] + [{"Sequence": {"id": "A", "type_id": 0}}] +
                      [part(t) for t in end],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in set(begin + end)}}


def variants(byte_size, character_size):
    token = byte_level_texts.token
    ends = [token(0, "<unk>", special=True), token(1, "<s>", special=True), token(2, "</s>", special=True)]
    flagged = ends + [
        token(character_size, "[n]", normalized=True), token(character_size + 1, "[l]", lstrip=True, rstrip=True),
        token(character_size + 2, "[w]", single_word=True), token(character_size + 3, "keeper", normalized=True,
                                                                  single_word=True)]
    llama_normalizer = normalizers({"type": "Prepend", "prepend": MARK}, replace(literal(" "), MARK))
    llama_decoder = {"type": "Sequence", "decoders": [
        replace(literal(MARK), " "), {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    characters = {"model": "characters", "added_tokens": ends, "normalizer": None, "pre_tokenizer": None,
                  "post_processor": None, "decoder": llama_decoder,
                  "settings": {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}}
    in_bytes = {"model": "bytes", "added_tokens": [], "normalizer": None,
                "pre_tokenizer": byte_level_texts.byte_level(), "post_processor": None,
                "decoder": byte_level_texts.byte_level(), "settings": {}}
    metaspace_decoder = lambda scheme: {"decoder": {"type": "Sequence", "decoders": [
        {"type": "ByteFallback"}, metaspace(scheme, True)]}}
    result = {
        "llama2": characters | {"normalizer": llama_normalizer, "post_processor": template(["<s>"], [])},
        "llama2-flags": characters | {"normalizer": llama_normalizer, "added_tokens": flagged,
                                      "post_processor": template(["<s>"], ["</s>"])},
        "mistral": characters | {"pre_tokenizer": metaspace("first", False)},
        "metaspace-always": characters | metaspace_decoder("always") | {
            "pre_tokenizer": metaspace("always", True)},
        "metaspace-never": characters | metaspace_decoder("never") | {
            "pre_tokenizer": metaspace("never", True)},
        "unknown-fused": characters | {"settings": {"unk_token": "<unk>", "fuse_unk": True}},
        "unknown": characters | {"settings": {"unk_token": "<unk>"},
                                 "pre_tokenizer": metaspace("always", True)},
        "ignore-merges": characters | {"pre_tokenizer": metaspace("always", True), "settings": {
            "unk_token": "<unk>", "byte_fallback": True, "ignore_merges": True}},
        "digits": characters | {"pre_tokenizer": byte_level_texts.sequence(
            metaspace("always", True), {"type": "Digits", "individual_digits": True})},
        "nfkc": in_bytes | {"normalizer": {"type": "NFKC"}},
        "lowercase": in_bytes | {"normalizer": normalizers({"type": "NFC"}, {"type": "Lowercase"})},
        "replace": in_bytes | {"normalizer": normalizers(
            replace(regex(r" {2,}|\n+"), " "), replace(literal("e"), "the "), {"type": "Prepend", "prepend": "x"})},
    }
    for behavior in ["Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"]:
        result["split-" + behavior] = in_bytes | {"pre_tokenizer": then_bytes(
            split(regex(r"\p{N}|[aeiou ]"), behavior))}
        result["split-text-" + behavior] = in_bytes | {"pre_tokenizer": then_bytes(
            split(literal("e"), behavior, invert=True), split(literal(" "), behavior))}
    return result


def complete(variant, models):
    parts = {key: value for key, value in variant.items() if key not in ("model", "settings")}
    plain = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    model = models[variant["model"]] | plain | variant["settings"]
    return {"version": "1.0", "truncation": None, "padding": None, "model": model} | parts


def encoded(peer, texts):
    return {"ids": [peer.encode(t, add_special_tokens=False).ids for t in texts],
            "template_ids": [peer.encode(t).ids for t in texts[:10]],
            "decoded": [peer.decode(peer.encode(t, add_special_tokens=False).ids, skip_special_tokens=False)
                        for t in texts]}


def sentencepieces(texts, scale):
    """A model of sentencepiece, and what it gives. Prefix and byte fallback as Llama 2."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 3), model_writer=model, model_type="bpe", vocab_size=560,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        character_coverage=1.0, minloglevel=2, hard_vocab_limit=False)
    peer = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    kinds = lambda i: (2 if peer.is_unknown(i) else 3 if peer.is_control(i) else 6 if peer.is_byte(i) else 1)
    return {"tokens": [peer.id_to_piece(i) for i in range(peer.get_piece_size())],
            "scores": [peer.get_score(i) * scale for i in range(peer.get_piece_size())],
            "types": [kinds(i) for i in range(peer.get_piece_size())],
            "ids": [peer.encode(t) for t in texts], "decoded": [peer.decode(peer.encode(t)) for t in texts]}


def without_control(text):
    for token in ("<s>", "</s>", "<unk>", "\0"):
        text = text.replace(token, "")
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=30)
    parser.add_argument("--longest", type=int, default=12)
    parser.add_argument("--file")
    parser.add_argument("--tokenizer", action="append", default=[])
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    texts = ["a [n] b", "[n] [n]keeper", "[l] [n] keeper keeper"]  # spaces that normalised tokens take in
    texts += [random_text(generator, options.longest) for _ in range(options.texts)]
    if options.file:
        texts += pathlib.Path(options.file).read_text(encoding="utf-8").split("\n")
    models = {"bytes": byte_level_texts.trained_model(), "characters": character_model()}
    result = {"texts": texts, "models": models,
              "variants": variants(len(models["bytes"]["vocab"]), len(models["characters"]["vocab"])),
              "results": {}, "files": {}}
    for name, variant in result["variants"].items():
        peer = tokenizers.Tokenizer.from_str(json.dumps(complete(variant, models)))
        result["results"][name] = encoded(peer, texts)
    for path in options.tokenizer:
        result["files"][path] = encoded(tokenizers.Tokenizer.from_file(path), texts)
    pieces_texts = [without_control(t) for t in texts]
    result["sentencepiece"] = {"texts": pieces_texts} | sentencepieces(pieces_texts, 1.0)
    print(json.dumps(result, separators=(",", ":")))


if __name__ == "__main__":
    main()
