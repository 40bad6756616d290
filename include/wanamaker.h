/* The C interface: gated layers that `study export` wrote, run on the caller's buffers. C11 and
 * C++. Compile include/wanamaker.cpp (CMake: WANAMAKER_BUILD_C_API, target wanamaker::c).
 *
 * Every function returns a status and refuses bad arguments; wanamaker_last_error() then says in a
 * sentence what was wrong. Handles are numbers that are never used twice: one that was closed, or
 * that is another thing's, is refused. All functions may be called from several threads at once;
 * a session serves one call at a time, a layer any number. docs/embedding.md shows programs. */
#ifndef WANAMAKER_H
#define WANAMAKER_H

#include <stdint.h>

/* Grows with every change that breaks programs compiled before it. */
#define WANAMAKER_C_ABI 1

#if defined(_WIN32)
#if defined(WANAMAKER_C_COMPILED)
#define WANAMAKER_C_API __declspec(dllexport)
#else
#define WANAMAKER_C_API __declspec(dllimport)
#endif
#else
#define WANAMAKER_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t wanamaker_status;
enum {
  WANAMAKER_OK = 0,
  WANAMAKER_NULL = 1,       /* a pointer that must not be null is */
  WANAMAKER_BAD_HANDLE = 2, /* no open layer or session has this handle */
  WANAMAKER_BAD_SHAPE = 3,  /* rows, columns, strides, buffers or a layer that do not fit */
  WANAMAKER_BAD_TYPE = 4,   /* no type of elements */
  WANAMAKER_BAD_FILE = 5,   /* missing, unreadable or damaged files */
  WANAMAKER_BAD_DATA = 6,   /* numbers that cannot be, or that fail their check vectors */
  WANAMAKER_BUSY = 7,       /* the session is in another call */
  WANAMAKER_OUT_OF_MEMORY = 8,
  WANAMAKER_HOST_FAILED = 9, /* the caller's MLP, or executor, did not do its work */
  WANAMAKER_FAILED = 10      /* anything else */
};

typedef int32_t wanamaker_type;
enum {
  WANAMAKER_FLOAT32 = 1,
  WANAMAKER_FLOAT64 = 2,
  WANAMAKER_FLOAT16 = 3, /* IEEE 754 binary16 */
  WANAMAKER_BFLOAT16 = 4
};

/* Handles; 0 is none. */
typedef uint64_t wanamaker_layer;
typedef uint64_t wanamaker_session;

/* The caller's MLP: writes y [rows x columns] for the layer's input x. 0: done. */
typedef int32_t (*wanamaker_mlp)(void* context, int64_t rows, int64_t columns, const float* x,
                                 int64_t x_stride, float* y, int64_t y_stride);

/* The caller's threads: run() calls piece(argument, i) once for each i below pieces, on any
 * threads, and returns when all are done; at most `concurrency` (1 to 1024) are in work at once. */
typedef struct wanamaker_executor {
  void* context;
  int64_t concurrency;
  void (*run)(void* context, int64_t pieces, void (*piece)(void* argument, int64_t number),
              void* argument);
} wanamaker_executor;

/* WANAMAKER_C_ABI of the library that was loaded: compare it with that of this header. */
WANAMAKER_C_API uint32_t wanamaker_c_abi(void);
/* "0.1.0". */
WANAMAKER_C_API const char* wanamaker_version(void);
/* What was wrong in the last call of this thread that failed; "" before any. Valid until the next
 * one fails. */
WANAMAKER_C_API const char* wanamaker_last_error(void);

/* The layer's gate, map and MLP from a folder that `study export --replace gate-...` wrote. They
 * must give what the file's check vectors say. */
WANAMAKER_C_API wanamaker_status wanamaker_layer_open(const char* folder, int64_t number,
                                                      wanamaker_layer* layer);
/* The same with the caller's MLP in the place of the folder's. It is called here with rows of the
 * check vectors, later by every thread that runs the layer. */
WANAMAKER_C_API wanamaker_status wanamaker_layer_open_with(const char* folder, int64_t number,
                                                           wanamaker_mlp mlp, void* context,
                                                           wanamaker_layer* layer);
/* Calls in work end well. */
WANAMAKER_C_API wanamaker_status wanamaker_layer_close(wanamaker_layer layer);
/* Columns of its inputs and outputs. */
WANAMAKER_C_API wanamaker_status wanamaker_layer_width(wanamaker_layer layer, int64_t* width);
/* Rows that it has sent to the map and to the MLP since it was opened, in all sessions. */
WANAMAKER_C_API wanamaker_status wanamaker_layer_counts(wanamaker_layer layer, int64_t* to_map,
                                                        int64_t* to_mlp);

/* Memory and threads of one caller. executor: null for the calling thread. */
WANAMAKER_C_API wanamaker_status wanamaker_session_open(const wanamaker_executor* executor,
                                                        wanamaker_session* session);
/* Calls with the layer and up to `rows` rows allocate nothing afterwards. Runs it on zeros. */
WANAMAKER_C_API wanamaker_status wanamaker_session_reserve(wanamaker_session session,
                                                           wanamaker_layer layer, int64_t rows);
WANAMAKER_C_API wanamaker_status wanamaker_session_close(wanamaker_session session);

/* y [rows x columns] = the layer's output for its input x: the map's where the gate's score is
 * above 0, else the MLP's. Strides in elements, from row to row. x and y share no element. */
WANAMAKER_C_API wanamaker_status wanamaker_forward(wanamaker_layer layer, wanamaker_session session,
                                                   wanamaker_type type, int64_t rows,
                                                   int64_t columns, const void* x, int64_t x_stride,
                                                   void* y, int64_t y_stride);
/* scores [rows] = the gate's for x. */
WANAMAKER_C_API wanamaker_status wanamaker_scores(wanamaker_layer layer, wanamaker_session session,
                                                  wanamaker_type type, int64_t rows,
                                                  int64_t columns, const void* x, int64_t x_stride,
                                                  double* scores);

#ifdef __cplusplus
}
#endif

#endif
