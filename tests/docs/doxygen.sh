#!/bin/sh
# doxygen.sh DOXYFILE: makes the API reference; fails at the first docstring that is malformed.
command -v doxygen >/dev/null || { echo "skipped: doxygen is not installed"; exit 77; }
exec doxygen "$1"
