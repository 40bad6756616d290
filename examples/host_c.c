/* A host program in C: loops over its own array, and at one layer of its model lets wanamaker
 * decide row by row between a linear map and the MLP. The layer comes from a folder that
 * `study export --replace gate-logistic` wrote. Usage: host_c FOLDER LAYER */
#include <stdio.h>
#include <stdlib.h>

#include "wanamaker.h"

#define ROWS 32

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, wanamaker_last_error());
  return 1;
}

static int route(wanamaker_layer layer, int64_t width) {
  wanamaker_session session = 0;
  float* const x = malloc(sizeof(float) * (size_t)(ROWS * width));
  float* const y = malloc(sizeof(float) * (size_t)(ROWS * width));
  int64_t i = 0, to_map = 0, to_mlp = 0;
  int result = 0;
  if (x == NULL || y == NULL) return 1;
  for (i = 0; i < ROWS * width; ++i) x[i] = (float)(i * 2654435761u % 2001u) / 1000.0f - 1.0f;

  if (wanamaker_session_open(NULL, &session) != WANAMAKER_OK) result = failed("session");
  if (result == 0 && wanamaker_forward(layer, session, WANAMAKER_FLOAT32, ROWS, width, x, width, y,
                                       width) != WANAMAKER_OK) {
    result = failed("forward");
  }
  if (wanamaker_layer_counts(layer, &to_map, &to_mlp) != WANAMAKER_OK) result = failed("counts");
  printf("%lld rows to the map, %lld to the MLP; y[0][0] = %g\n", (long long)to_map,
         (long long)to_mlp, (double)y[0]);
  wanamaker_session_close(session);
  free(x);
  free(y);
  return result != 0 || to_map + to_mlp != ROWS;
}

int main(int count, char** arguments) {
  wanamaker_layer layer = 0;
  int64_t width = 0;
  int result = 0;
  if (count != 3) {
    fprintf(stderr, "usage: host_c FOLDER LAYER\n");
    return 2;
  }
  if (wanamaker_c_abi() != WANAMAKER_C_ABI) {
    fprintf(stderr, "another wanamaker was loaded than this was compiled for\n");
    return 1;
  }
  if (wanamaker_layer_open(arguments[1], atol(arguments[2]), &layer) != WANAMAKER_OK ||
      wanamaker_layer_width(layer, &width) != WANAMAKER_OK) {
    return failed("open");
  }
  result = route(layer, width);
  wanamaker_layer_close(layer);
  return result;
}
