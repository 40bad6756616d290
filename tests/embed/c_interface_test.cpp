// The C interface: what it computes, and that misuse is a status, never a crash.
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include "embed_artefact.hpp"
#include "wanamaker.h"

namespace {

using namespace wanamaker_test;

/// The planted layer's MLP as a C function; `context` counts its rows, or is null.
std::int32_t planted_mlp(void* context, std::int64_t rows, std::int64_t columns, const float* x,
                         std::int64_t x_stride, float* y, std::int64_t y_stride) {
  const PlainLayer plain(planted_width);
  if (context != nullptr) *static_cast<std::atomic<std::int64_t>*>(context) += rows;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Numbers row(x + i * x_stride, x + i * x_stride + columns);
    const Numbers answer = plain.mlp(row.data());
    for (std::int64_t j = 0; j < columns; ++j) {
      y[i * y_stride + j] = static_cast<float>(answer[static_cast<std::size_t>(j)]);
    }
  }
  return 0;
}
std::int32_t failing_mlp(void*, std::int64_t, std::int64_t, const float*, std::int64_t, float*,
                         std::int64_t) {
  return 7;
}

/// Threads of a host program, one for each piece.
void run_on_threads(void* context, std::int64_t pieces,
                    void (*piece)(void* argument, std::int64_t number), void* argument) {
  ++*static_cast<int*>(context);
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < pieces; ++i) threads.emplace_back([=] { piece(argument, i); });
  for (std::thread& thread : threads) thread.join();
}

void run_first_only(void*, std::int64_t, void (*piece)(void*, std::int64_t), void* argument) {
  piece(argument, 0);
}
void run_beyond(void*, std::int64_t pieces, void (*piece)(void*, std::int64_t), void* argument) {
  for (std::int64_t i = 0; i < pieces - 1; ++i) piece(argument, i);
  piece(argument, pieces);
  piece(argument, -1);
}

/// A folder with the planted layer as number 3, opened with the host's MLP, and a session.
struct OpenLayer {
  explicit OpenLayer(const wanamaker_executor* executor = nullptr, void* context = nullptr) {
    EmbedBackend backend;
    write_gated_layers<float>(folder.path(), {planted_gated_layer(backend, 3)});
    const std::string path = folder.path().string();
    const wanamaker_status opened =
        wanamaker_layer_open_with(path.c_str(), 3, planted_mlp, context, &layer);
    INFO(wanamaker_last_error());
    REQUIRE(opened == WANAMAKER_OK);
    REQUIRE(wanamaker_session_open(executor, &session) == WANAMAKER_OK);
  }
  ~OpenLayer() {
    wanamaker_layer_close(layer);
    wanamaker_session_close(session);
  }
  OpenLayer(const OpenLayer&) = delete;
  OpenLayer& operator=(const OpenLayer&) = delete;

  wanamaker_status forward(const std::vector<float>& x, std::vector<float>& y) const {
    return wanamaker_forward(layer, session, WANAMAKER_FLOAT32,
                             static_cast<std::int64_t>(x.size()) / planted_width, planted_width,
                             x.data(), planted_width, y.data(), planted_width);
  }

  TemporaryFolder folder{};
  wanamaker_layer layer = 0;
  wanamaker_session session = 0;
};

std::vector<float> host_floats(std::uint64_t seed, Index rows) {
  const Numbers values = short_numbers(seed, rows * planted_width);
  return {values.begin(), values.end()};
}

bool last_error_has(const char* text) {
  return std::strstr(wanamaker_last_error(), text) != nullptr;
}

/// Arguments of a call, right or wrong, drawn by chance.
struct Misuse {
  explicit Misuse(std::uint64_t seed) : random(seed) {}

  bool chance() { return random.uniform() < 0.25; }
  std::uint64_t handle(std::uint64_t right, std::uint64_t other, std::uint64_t stale) {
    if (!chance()) return right;
    const std::array<std::uint64_t, 6> wrong{0, 1, other, stale, ~std::uint64_t{0}, random()};
    return wrong[random() % wrong.size()];
  }
  std::int64_t number(std::int64_t right) {
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const std::array<std::int64_t, 7> wrong{-1,       0,     planted_width - 1, least, most,
                                            most / 4, -right};
    return chance() ? wrong[random() % wrong.size()] : right;
  }
  template <class T>
  T* pointer(T* right) {
    if (!chance()) return right;
    return chance() ? reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(right) + 1) : nullptr;
  }

  RandomStream random;
};

}  // namespace

TEST_CASE("the C interface computes what loops in double give, for every type and executor") {
  int runs = 0;
  const wanamaker_executor threads{&runs, 3, run_on_threads};
  std::atomic<std::int64_t> rows_of_mlp{0};
  const OpenLayer open(&threads, &rows_of_mlp);
  std::int64_t width = 0, to_map = 0, to_mlp = 0;
  REQUIRE(wanamaker_layer_width(open.layer, &width) == WANAMAKER_OK);
  CHECK(width == planted_width);
  CHECK(wanamaker_session_reserve(open.session, open.layer, 300) == WANAMAKER_OK);
  rows_of_mlp = 0;
  const PlainLayer plain(planted_width);
  const Numbers values = short_numbers(31, 300 * planted_width);
  const auto check_type = [&]<class T>(T, wanamaker_type type) {
    HostRows<T> x(300, planted_width, 9, 1), y(300, planted_width, 7, 0);
    x.fill(values);
    Numbers scores(300);
    CHECK(wanamaker_forward(open.layer, open.session, type, 300, planted_width, x.view.data, 9,
                            y.view.data, 7) == WANAMAKER_OK);
    CHECK(wanamaker_scores(open.layer, open.session, type, 300, planted_width, x.view.data, 9,
                           scores.data()) == WANAMAKER_OK);
    bool all_right = true;
    for (Index i = 0; i < 300; ++i) {
      const double* const row = values.data() + i * planted_width;
      all_right = all_right && all_close(y.row(i), plain(row), 0x1p-7, 1e-4) &&
                  std::abs(scores[static_cast<std::size_t>(i)] - plain.score(row)) < 1e-12;
    }
    CHECK(all_right);
  };
  check_type(float(), WANAMAKER_FLOAT32);
  check_type(double(), WANAMAKER_FLOAT64);
  check_type(half(), WANAMAKER_FLOAT16);
  check_type(bfloat16(), WANAMAKER_BFLOAT16);
  REQUIRE(wanamaker_layer_counts(open.layer, &to_map, &to_mlp) == WANAMAKER_OK);
  CHECK(to_map + to_mlp == 4 * 300);
  CHECK(to_map > 0);
  CHECK(to_mlp > 0);
  CHECK(rows_of_mlp == to_mlp);
  CHECK(runs > 0);
  CHECK(wanamaker_c_abi() == WANAMAKER_C_ABI);
  CHECK(std::string(wanamaker_version()) == "0.1.0");
}

TEST_CASE("each kind of misuse has its status and a sentence") {
  OpenLayer open;
  const std::vector<float> x = host_floats(32, 4);
  std::vector<float> y(x.size());
  const auto forward = [&](wanamaker_layer layer, wanamaker_session session, wanamaker_type type,
                           std::int64_t columns, const float* from, float* to) {
    return wanamaker_forward(layer, session, type, 4, columns, from, planted_width, to,
                             planted_width);
  };
  CHECK(open.forward(x, y) == WANAMAKER_OK);
  const auto [l, s] = std::pair(open.layer, open.session);
  CHECK(forward(s, l, WANAMAKER_FLOAT32, 6, x.data(), y.data()) == WANAMAKER_BAD_HANDLE);
  CHECK(last_error_has("[c/handle]"));
  CHECK(forward(l, l, WANAMAKER_FLOAT32, 6, x.data(), y.data()) == WANAMAKER_BAD_HANDLE);
  CHECK(forward(l, s, 5, 6, x.data(), y.data()) == WANAMAKER_BAD_TYPE);
  CHECK(forward(l, s, WANAMAKER_FLOAT32, 5, x.data(), y.data()) == WANAMAKER_BAD_SHAPE);
  CHECK(forward(l, s, WANAMAKER_FLOAT32, 6, nullptr, y.data()) == WANAMAKER_BAD_SHAPE);
  CHECK(last_error_has("[embed/pointer]"));
  CHECK(forward(l, s, WANAMAKER_FLOAT32, 6, y.data(), y.data()) == WANAMAKER_BAD_SHAPE);
  CHECK(last_error_has("[embed/overlap]"));
  wanamaker_layer none = 1;
  CHECK(wanamaker_layer_open("/no/such/folder", 3, &none) == WANAMAKER_BAD_FILE);
  CHECK(none == 0);
  const std::string folder = open.folder.path().string();
  CHECK(wanamaker_layer_open(nullptr, 3, &none) == WANAMAKER_NULL);
  CHECK(wanamaker_layer_open(folder.c_str(), 3, nullptr) == WANAMAKER_NULL);
  CHECK(wanamaker_layer_open(folder.c_str(), 3, &none) == WANAMAKER_BAD_FILE);  // no config.json
  CHECK(wanamaker_layer_open_with(folder.c_str(), 4, planted_mlp, nullptr, &none) ==
        WANAMAKER_BAD_FILE);
  CHECK(last_error_has("[gate/no-such-layer]"));
  CHECK(wanamaker_layer_open_with(folder.c_str(), 3, nullptr, nullptr, &none) == WANAMAKER_NULL);
  CHECK(wanamaker_layer_open_with(folder.c_str(), 3, failing_mlp, nullptr, &none) ==
        WANAMAKER_HOST_FAILED);
  CHECK(wanamaker_layer_width(open.layer, nullptr) == WANAMAKER_NULL);
  CHECK(wanamaker_session_reserve(open.session, open.layer, -1) == WANAMAKER_BAD_SHAPE);
  const wanamaker_executor idle{nullptr, 1, nullptr}, unlimited{nullptr, 0, run_on_threads};
  wanamaker_session session = 1;
  CHECK(wanamaker_session_open(&idle, &session) == WANAMAKER_NULL);
  CHECK(wanamaker_session_open(&unlimited, &session) == WANAMAKER_BAD_SHAPE);
  CHECK(session == 0);
  CHECK(wanamaker_session_open(nullptr, nullptr) == WANAMAKER_NULL);
  CHECK(wanamaker_layer_close(open.layer) == WANAMAKER_OK);
  CHECK(wanamaker_layer_close(open.layer) == WANAMAKER_BAD_HANDLE);
  CHECK(open.forward(x, y) == WANAMAKER_BAD_HANDLE);
}

TEST_CASE("an executor that does not run every piece is told so") {
  const std::vector<float> x = host_floats(36, 300);
  std::vector<float> y(x.size());
  for (const auto run : {run_first_only, run_beyond}) {
    const wanamaker_executor broken{nullptr, 3, run};
    const OpenLayer open(&broken);
    CHECK(open.forward(x, y) == WANAMAKER_HOST_FAILED);
    CHECK(last_error_has("[c/executor]"));
  }
}

TEST_CASE("arguments drawn by chance never crash a call") {
  const OpenLayer open;
  wanamaker_session stale_session = 0;
  wanamaker_layer stale_layer = 0;
  {
    const OpenLayer closed;
    stale_session = closed.session;
    stale_layer = closed.layer;
  }
  std::vector<double> x(static_cast<std::size_t>(5 * planted_width), 0.25), y(x.size());
  std::array<int, 11> seen{};
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Misuse any(seed);
    const auto layer = any.handle(open.layer, open.session, stale_layer);
    const auto session = any.handle(open.session, open.layer, stale_session);
    const auto type = static_cast<wanamaker_type>(any.chance() ? any.random() : 1 + seed % 4);
    const std::int64_t rows = any.number(5), columns = any.number(planted_width);
    const std::int64_t x_stride = any.number(planted_width), y_stride = any.number(planted_width);
    const double* const from = any.pointer(x.data());
    double* const to = any.pointer(y.data());
    const wanamaker_status status =
        any.chance()
            ? wanamaker_scores(layer, session, type, rows, columns, from, x_stride, to)
            : wanamaker_forward(layer, session, type, rows, columns, from, x_stride, to, y_stride);
    REQUIRE(status >= WANAMAKER_OK);
    REQUIRE(status <= WANAMAKER_FAILED);
    ++seen[static_cast<std::size_t>(status)];
    REQUIRE((status == WANAMAKER_OK || std::strlen(wanamaker_last_error()) > 20));
  }
  CHECK(seen[WANAMAKER_OK] > 100);
  CHECK(seen[WANAMAKER_BAD_HANDLE] > 500);
  CHECK(seen[WANAMAKER_BAD_SHAPE] > 500);
  CHECK(seen[WANAMAKER_BAD_TYPE] > 100);
  CHECK(seen[WANAMAKER_FAILED] == 0);
  std::vector<float> again(static_cast<std::size_t>(5 * planted_width));
  CHECK(open.forward(host_floats(33, 5), again) == WANAMAKER_OK);
}

TEST_CASE("a session serves one call at a time, and may not be used by the MLP of its own call") {
  struct Inner {
    wanamaker_layer layer = 0;
    wanamaker_session session = 0;
    wanamaker_status status = WANAMAKER_OK;
  } inner;
  const auto calling_mlp = [](void* context, std::int64_t rows, std::int64_t columns,
                              const float* x, std::int64_t x_stride, float* y,
                              std::int64_t y_stride) -> std::int32_t {
    auto& call = *static_cast<Inner*>(context);
    std::vector<float> own(static_cast<std::size_t>(rows * columns));
    call.status = wanamaker_forward(call.layer, call.session, WANAMAKER_FLOAT32, rows, columns, x,
                                    x_stride, own.data(), columns);
    return planted_mlp(nullptr, rows, columns, x, x_stride, y, y_stride);
  };
  OpenLayer open;
  const std::string folder = open.folder.path().string();
  wanamaker_layer caller = 0;
  REQUIRE(wanamaker_layer_open_with(folder.c_str(), 3, calling_mlp, &inner, &caller) ==
          WANAMAKER_OK);
  CHECK(inner.status == WANAMAKER_BAD_HANDLE);  // no session yet
  inner.layer = open.layer;
  inner.session = open.session;
  const std::vector<float> x = host_floats(34, 12);
  std::vector<float> y(x.size());
  CHECK(wanamaker_forward(caller, open.session, WANAMAKER_FLOAT32, 12, planted_width, x.data(),
                          planted_width, y.data(), planted_width) == WANAMAKER_OK);
  CHECK(inner.status == WANAMAKER_BUSY);
  CHECK(wanamaker_layer_close(caller) == WANAMAKER_OK);
}

TEST_CASE("threads read one layer at once while others open and close") {
  const OpenLayer open;
  const std::string folder = open.folder.path().string();
  const std::vector<float> x = host_floats(35, 40);
  std::vector<float> expected(x.size());
  REQUIRE(open.forward(x, expected) == WANAMAKER_OK);
  std::atomic<int> wrong{0};
  const auto read = [&] {
    wanamaker_session session = 0;
    wanamaker_layer own = 0;
    if (wanamaker_session_open(nullptr, &session) != WANAMAKER_OK) ++wrong;
    for (int i = 0; i < 30; ++i) {
      std::vector<float> y(x.size());
      const wanamaker_status status =
          wanamaker_forward(open.layer, session, WANAMAKER_FLOAT32, 40, planted_width, x.data(),
                            planted_width, y.data(), planted_width);
      if (status != WANAMAKER_OK || y != expected) ++wrong;
      if (i % 10 == 0 && wanamaker_layer_open_with(folder.c_str(), 3, planted_mlp, nullptr, &own) !=
                             WANAMAKER_OK) {
        ++wrong;
      }
      if (i % 10 == 9 && wanamaker_layer_close(own) != WANAMAKER_OK) ++wrong;
    }
    if (wanamaker_session_close(session) != WANAMAKER_OK) ++wrong;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(read);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
