#!/bin/sh
# A text larger than the memory that `study tokenize` may have, its own code and libraries included.
#   tokenize_memory.sh PROGRAM DATA FOLDER
# WANAMAKER_TEXT_MEGABYTES: how large the text is (100).
set -eu
program=$1 data=$2 folder=$3
megabytes=${WANAMAKER_TEXT_MEGABYTES:-100}
limit=96000  # kB of address space
mkdir -p "$folder"
if ! (ulimit -v 1000000) 2>/dev/null; then
  echo "skipped: no limits on memory here"
  exit 0
fi

# The text comes by a pipe, the ids are counted by their commas: neither is held anywhere.
text() { yes "$(cat "$data/narrative.txt")" | head -c "$1"; }
ids() {
  text "$1" | {
    ulimit -c 0
    ulimit -v "$limit"
    "$program" tokenize --quiet --threads 1 --model "$data/models/books-gpt2" --text - ||
      echo failed >"$folder/failed"
  } | tr -cd , | wc -c
}

rm -f "$folder/failed"
# Whole repetitions of the text have the ids of one, again and again, but where they meet.
bytes=$(($(wc -c <"$data/narrative.txt")))
once=$(($(ids "$bytes") + 1))
times=$((megabytes * 1000000 / bytes))
found=$(($(ids $((times * bytes))) + 1))
[ ! -e "$folder/failed" ] || exit 1
echo "$megabytes MB in $limit kB: $found ids, $times times about $once"
[ "$found" -ge $((times * (once - 2))) ] && [ "$found" -le $((times * (once + 2))) ]
