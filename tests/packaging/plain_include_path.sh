#!/bin/sh
# plain_include_path.sh COMPILER SOURCE_DIR WORK_DIR: no build system, just -I.
set -e
compiler=$1 source_dir=$2 work_dir=$3
consumer=$source_dir/tests/packaging/consumer
"$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Werror -I"$source_dir/include" \
  "$consumer/core_main.cpp" "$consumer/core_other.cpp" -pthread -o "$work_dir/plain_include_path"
"$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Werror -I"$source_dir/include" \
  "$consumer/embed_main.cpp" -pthread -o "$work_dir/plain_embed"
"$work_dir/plain_embed"
"$work_dir/plain_include_path"
"$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Werror -I"$source_dir/include" \
  "$consumer/embed_main.cpp" -pthread -o "$work_dir/plain_embed"
"$work_dir/plain_embed"
