/* A stranger's C program: the library loads, is the one of the header, and says what is wrong. */
#include <string.h>
#include <wanamaker.h>

int main(void) {
  wanamaker_session session = 0;
  wanamaker_layer layer = 1;
  const float x[2] = {1, 2};
  float y[2] = {0, 0};
  if (wanamaker_c_abi() != WANAMAKER_C_ABI) return 1;
  if (strcmp(wanamaker_version(), "0.1.0") != 0) return 2;
  if (wanamaker_session_open(NULL, &session) != WANAMAKER_OK) return 3;
  if (wanamaker_layer_open("no-such-folder", 0, &layer) != WANAMAKER_BAD_FILE) return 4;
  if (strstr(wanamaker_last_error(), "no-such-folder") == NULL) return 5;
  if (layer != 0) return 6;
  if (wanamaker_forward(layer, session, WANAMAKER_FLOAT32, 1, 2, x, 2, y, 2) !=
      WANAMAKER_BAD_HANDLE) {
    return 7;
  }
  return wanamaker_session_close(session) == WANAMAKER_OK ? 0 : 8;
}
