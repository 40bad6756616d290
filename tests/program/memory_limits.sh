#!/bin/sh
# The study program where memory ends early, at whatever moment: it is done, or says in one line what
# could not be had. Never a crash, never an exception of a library.
#   memory_limits.sh PROGRAM DATA FOLDER
set -eu
program=$1 data=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
if ! (ulimit -v 1000000) 2>/dev/null; then
  echo "skipped: no limits on memory here"
  exit 0
fi

# run KILOBYTES: the program's exit code under the limit, its words in $folder/errors.
run() {
  (
    ulimit -c 0
    ulimit -v "$1"
    exec "$program" sweep --quiet --threads 1 --model "$data/models/books-gpt2" \
      --text "$data/narrative.txt" --out "$folder/out" --layers 3 --ladder quick --resamples 100 \
      --fit-tokens 1000 --gate-tokens 800 --select-tokens 400 --report-tokens 400 --truncate 40 \
      --rho 1e-3 >"$folder/output" 2>"$folder/errors"
  )
}

refused=0 limit=40000
while code=0; run "$limit" || code=$?; [ "$code" != 0 ]; do
  # 127: the system's loader had no memory for the program itself; libgomp ends it as it is loaded.
  if [ "$code" != 127 ] && ! grep -q '^libgomp: Out of memory' "$folder/errors"; then
    if [ "$code" != 1 ] || [ "$(wc -l <"$folder/errors")" != 1 ] ||
      ! grep -q -E 'memory|no-thread' "$folder/errors"; then
      echo "with $limit kB: exit code $code and these words:"
      cat "$folder/errors"
      exit 1
    fi
    refused=$((refused + 1))
  fi
  # Small steps where the program itself begins: it allocates little before it has read anything.
  if [ "$refused" -le 20 ] && [ "$code" != 127 ]; then step=100; else step=500; fi
  limit=$((limit + step))
  [ "$limit" -lt 2000000 ] || { echo "never enough memory"; exit 1; }
done
echo "refused at $refused limits; enough: $limit kB"
[ "$refused" -ge 5 ]
