#!/bin/sh
# abi_tags.sh COMPILER SOURCE_DIR WORK_DIR FLAGS: units that pass our types link where Eigen and CBLAS
# are configured alike, and where they are not the linker names the difference. FLAGS is a file.
compiler=$1 source_dir=$2 work_dir=$3 flags=$4
here=$source_dir/tests/packaging/abi
mkdir -p "$work_dir" && cd "$work_dir" || exit 1

# compile NAME OPTION…: NAME.cpp to NAME.o, with a CBLAS of this folder.
compile() {
  name=$1
  shift
  "$compiler" -std=c++20 -O0 -c -I"$here" "@$flags" -UWANAMAKER_HAS_ONEDNN \
    -UWANAMAKER_HAS_CBLAS -DWANAMAKER_HAS_CBLAS=1 "$@" "$here/$name.cpp" -o "$name.o" || exit 1
}

# links: whether the two units do; what the linker says in link.log.
links() { "$compiler" giver.o taker.o -o abi_tags >link.log 2>&1; }

fail() {
  echo "$1"
  cat link.log
  exit 1
}

# refused TAG OPTION…: the giver compiled with the options does not link, and the linker names TAG.
refused() {
  tag=$1
  shift
  compile giver -DWITH_EIGEN "$@"
  if links; then fail "$* links with a unit compiled without"; fi
  grep -q "$tag" link.log || fail "no $tag in what the linker says of $*:"
  echo "$*: refused for $tag"
}

compile taker -DWITH_EIGEN
compile giver -DWITH_EIGEN
links && ./abi_tags || fail "units of one configuration do not link"
refused 'EigenConfiguration<128, 8>' -DEIGEN_MAX_ALIGN_BYTES=128
refused 'EigenConfiguration<[0-9]*, 4>' -DEIGEN_DEFAULT_DENSE_INDEX_TYPE=int
refused 'BlasConfiguration<false, 8, ' -DWIDE_BLAS_INTEGERS
# A unit that uses core alone knows nothing of Eigen and links with any other.
compile giver -DEIGEN_MAX_ALIGN_BYTES=128
links && ./abi_tags || fail "a unit of core alone does not link"
