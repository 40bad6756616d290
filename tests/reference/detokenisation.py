"""Writes detokenisation.json: texts beside what the wikitext rules, as patterns of Python's re,
make of them, and the SHA-256 of the wikitext files after these rules.

    python3 detokenisation.py SHARED_DATA > detokenisation.json      (made with Python 3.11)
"""
import hashlib
import json
import pathlib
import random
import re
import sys

BEFORE = [("s '", "s'"), (" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."), (" : ", ": "), (" ; ", "; "),
          (" . ", ". "), (" ! ", "! "), (" ? ", "? "), (" , ", ", ")]
PAIRS = [(r"\(\s*([^\)]*?)\s*\)", r"(\1)"), (r"\[\s*([^\]]*?)\s*\]", r"[\1]"),
         (r"{\s*([^}]*?)\s*}", r"{\1}"), (r"\"\s*([^\"]*?)\s*\"", r'"\1"'),
         (r"'\s*([^']*?)\s*'", r"'\1'")]
AFTER = [("= = = =", "===="), ("= = =", "==="), ("= =", "=="), (" \u00b0 ", "\u00b0"), (" \n", "\n"),
         ("\n ", "\n"), (" N ", " 1 "), (" 's", "'s")]


def detokenise(text):
    for old, new in BEFORE:
        text = text.replace(old, new)
    for pattern, new in PAIRS:
        text = re.sub(pattern, new, text)
    for old, new in AFTER:
        text = text.replace(old, new)
    return text


PIECES = ["a", "s", "N", " ", " ", " ", "(", ")", "[", "]", "{", "}", '"', "'", "=", " = =", "@-@",
          "@,@", "@.@", ",", ".", ":", ";", "!", "?", "\n", "\t", "\u00b0", "\u00a0", "\x1c", "\u00e9"]
choose = random.Random(5)
cases = []
for _ in range(150):
    text = "".join(choose.choice(PIECES) for _ in range(choose.randrange(40)))
    cases.append([text, detokenise(text)])
folder = pathlib.Path(sys.argv[1]) / "wikitext"
files = {path.name: hashlib.sha256(detokenise(path.read_bytes().decode()).encode()).hexdigest()
         for path in sorted(folder.glob("*.raw"))}
json.dump({"cases": cases, "files": files}, sys.stdout, ensure_ascii=True, indent=1)
print()
