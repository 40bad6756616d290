#!/bin/sh
# host_cuda.sh SOURCE_DIR WORK_DIR: compiles examples/host_cuda.cu where there is an nvcc, and runs it
# where there is a device.
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || { echo "skipped: nvcc is not installed"; exit 77; }
"$nvcc" -std=c++20 --expt-relaxed-constexpr -I "$1/include" -Werror all-warnings \
  -Xcompiler -Wall,-Wextra "$1/examples/host_cuda.cu" -o "$2/host_cuda" || exit 1
output=$("$2/host_cuda" 2>&1) && { echo "$output"; exit 0; }
echo "$output"
case $output in
  *"no CUDA-capable device"* | *"driver version is insufficient"* | *"CUDA driver"*)
    echo "compiled, not run: no device" ;;
  *) exit 1 ;;
esac
