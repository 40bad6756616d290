// Operations by rows: norms, activations, linear layers, copies, gathers, rotary positions.
#pragma once

#include "backend/conformance_products.hpp"
#include "wanamaker/backend/generic.hpp"

namespace wanamaker_test::conformance {

using namespace wanamaker;

/// A place for results, NaN in and around it.
template <Backend B>
Uploaded<B, scalar_t<B>> result_of(B& backend, Index rows, Index cols) {
  using S = scalar_t<B>;
  return upload(backend, HostMatrix<S>(rows, cols, 3, 3, gap_value<S>()));
}

template <Backend B>
void check_norms(B& backend, Index d, double centre) {
  using S = scalar_t<B>;
  CAPTURE(d);
  CAPTURE(centre);
  RandomStream random(7);
  const auto x = random_matrix<S>(random, 19, d, 3, centre);
  const auto gain = random_matrix<S>(random, 1, d), bias = random_matrix<S>(random, 1, d);
  auto x_there = upload(backend, x), y_there = result_of(backend, 19, d);
  auto gain_there = upload(backend, gain), bias_there = upload(backend, bias);
  const Expected rms = rms_norm(to_double(x), to_double(gain), 1e-6, precision_of<S>());
  ops::rms_norm<B>(backend, x_there.view(), gain_there.vector(), 1e-6, y_there.view());
  CHECK(within(y_there.download(), rms));
  const Expected layer =
      layer_norm(to_double(x), to_double(gain), to_double(bias), 1e-5, precision_of<S>());
  for (auto* y : {&y_there, &x_there}) {  // the last time in place
    ops::layer_norm<B>(backend, x_there.view(), gain_there.vector(), bias_there.vector(), 1e-5,
                       y->view());
    CHECK(within(y->download(), layer));
  }
}

template <Backend B>
void norms(B& backend) {
  for (const Index d : {1, 2, 15, 16, 17, 33, 768}) {
    check_norms(backend, d, 0.0);
    check_norms(backend, d, 50.0);
  }
}

/// The activation of every entry of `inputs`, by a linear layer that passes its input on.
template <class Activation, Backend B>
void check_activation(B& backend, const HostMatrix<double>& inputs) {
  using S = scalar_t<B>;
  using W = storage_t<B>;
  HostMatrix<W> pass(inputs.cols, inputs.cols);
  for (Index j = 0; j < inputs.cols; ++j) pass(j, j) = static_cast<W>(1.0f);
  CAPTURE(Activation::name);
  auto x = upload(backend, converted<S>(inputs));
  auto w = upload(backend, pass);
  auto y = result_of(backend, inputs.rows, inputs.cols);
  ops::linear<B>(backend, x.view(), plain(w.view()), {}, y.view(), Activation{});
  CHECK(within(y.download(), activated(to_double(x.uploaded()), activation_oracle<Activation>(),
                                       precision_of<S>())));
}

template <Backend B>
void activations(B& backend) {
  RandomStream random(8);
  HostMatrix<double> inputs = random_matrix<double>(random, 37, 33, 1, 0.0, 12.0);
  const std::vector<double> special{0.0,  1e-8, -1e-8,  1e-30, 5.5,   -5.5, 9.0,
                                    -9.0, 86.0, -100.0, 1e4,   -1e4f, 1e30, -0.0};
  for (std::size_t i = 0; i < special.size(); ++i) inputs(static_cast<Index>(i), 7) = special[i];
  // Rows of NaN alone: a product with zeros would make them.
  const auto nans = filled(3, 5, 0, [] { return std::nan(""); });
  for (const HostMatrix<double>& x : {inputs, nans}) {
    check_activation<Identity>(backend, x);
    check_activation<GeluTanh>(backend, x);
    check_activation<GeluErf>(backend, x);
    check_activation<Silu>(backend, x);
    check_activation<Relu>(backend, x);
  }
}

template <class Activation, Backend B>
void check_linear(B& backend, const ProductShape& shape, bool with_bias, bool is_transposed) {
  using S = scalar_t<B>;
  CAPTURE(shape.m);
  CAPTURE(shape.n);
  CAPTURE(shape.k);
  CAPTURE(with_bias);
  CAPTURE(is_transposed);
  RandomStream random(9);
  const auto x = random_matrix<S>(random, shape.m, shape.k, 2);
  const auto weight = random_matrix<storage_t<B>>(random, shape.k, shape.n, 1);
  const auto bias =
      with_bias ? random_matrix<S>(random, 1, shape.n, 0, 0.0, 2.0) : HostMatrix<S>(1, shape.n);
  auto x_there = upload(backend, x), bias_there = upload(backend, bias);
  auto weight_there = upload(backend, is_transposed ? transposed_copy(weight) : weight);
  auto y_there = result_of(backend, shape.m, shape.n);
  ops::linear<B>(backend, x_there.view(), operand_of(weight_there, is_transposed),
                 with_bias ? bias_there.const_vector() : ConstVectorView<S>{}, y_there.view(),
                 Activation{});
  CHECK(within(y_there.download(), linear(to_double(x), to_double(weight), to_double(bias),
                                          activation_oracle<Activation>(), precision_of<S>())));
}

template <Backend B>
void linear_layers(B& backend) {
  const std::vector<ProductShape> shapes{{1, 7, 5},   {7, 1, 5},     {5, 3, 0},     {17, 33, 16},
                                         {3, 769, 5}, {129, 385, 3}, {257, 769, 2}, {0, 3, 5}};
  for (const ProductShape& shape : shapes) {
    for (const bool with_bias : {false, true}) {
      for (const bool is_transposed : {false, true}) {
        check_linear<Identity>(backend, shape, with_bias, is_transposed);
        check_linear<GeluTanh>(backend, shape, with_bias, is_transposed);
      }
    }
  }
}

template <Backend B>
void gated_products(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(10);
  const auto gate = random_matrix<S>(random, 18, 35, 1, 0.0, 6.0);
  const auto up = random_matrix<S>(random, 18, 35, 2);
  const Expected expected =
      gated_product(to_double(gate), to_double(up), activation_oracle<Silu>(), precision_of<S>());
  auto gate_there = upload(backend, gate), up_there = upload(backend, up);
  auto y_there = result_of(backend, 18, 35);
  for (auto* y : {&y_there, &gate_there}) {  // the last time in place
    ops::gated_product<B>(backend, gate_there.view(), up_there.view(), Silu{}, y->view());
    CHECK(within(y->download(), expected));
  }
}

template <Backend B>
void sums_and_broadcasts(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(11);
  const auto a = integer_matrix<S>(random, 18, 35, 1), b = integer_matrix<S>(random, 18, 35, 2);
  const auto row = random_matrix<S>(random, 1, 35);
  HostMatrix<double> sum = to_double(a), difference = sum, product = sum, repeated(18, 35);
  for (Index i = 0; i < 18; ++i) {
    for (Index j = 0; j < 35; ++j) {
      sum(i, j) += static_cast<double>(b(i, j));
      difference(i, j) -= static_cast<double>(b(i, j));
      product(i, j) *= static_cast<double>(b(i, j));
      repeated(i, j) = static_cast<double>(row(0, j));
    }
  }
  auto a_there = upload(backend, a), b_there = upload(backend, b), row_there = upload(backend, row);
  auto y_there = result_of(backend, 18, 35);
  ops::broadcast_rows<B>(backend, row_there.vector(), y_there.view());
  CHECK(equal(y_there.download(), repeated));
  ops::subtract<B>(backend, a_there.view(), b_there.view(), y_there.view());
  CHECK(equal(y_there.download(), difference));
  ops::multiply<B>(backend, a_there.view(), b_there.view(), y_there.view());
  CHECK(equal(y_there.download(), product));
  for (auto* y : {&y_there, &a_there}) {  // the last time in place
    ops::add<B>(backend, a_there.view(), b_there.view(), y->view());
    CHECK(equal(y->download(), sum));
  }
}

/// Within a type and from storage to scalar exact; to storage as the format's own conversion.
template <Backend B>
void copies(B& backend) {
  using S = scalar_t<B>;
  using W = storage_t<B>;
  RandomStream random(12);
  const auto values = random_matrix<S>(random, 18, 35);
  const auto weights = random_matrix<W>(random, 18, 35, 4);
  auto values_there = upload(backend, values);
  auto weights_there = upload(backend, weights);
  auto y_there = result_of(backend, 18, 35);
  ops::copy(backend, values_there.view(), y_there.view());
  CHECK(equal(y_there.download(), to_double(values)));
  ops::copy(backend, weights_there.const_view(), y_there.view());
  CHECK(equal(y_there.download(), to_double(weights)));
  ops::copy(backend, values_there.view(), weights_there.view());
  CHECK(equal(weights_there.download(), to_double(converted<W>(values))));
}

inline HostMatrix<TokenId> index_row(const std::vector<TokenId>& index) {
  HostMatrix<TokenId> row(1, static_cast<Index>(index.size()));
  row.values = index;
  return row;
}

template <class U, Backend B>
void check_gather(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(12);
  const auto table = random_matrix<U>(random, 9, 21, 2);
  const auto before = integer_matrix<S>(random, 5, 21, 1);
  const std::vector<TokenId> index{8, 0, 3, 3, 7};
  HostMatrix<double> gathered(5, 21);
  Expected added(5, 21);
  for (Index i = 0; i < 5; ++i) {
    for (Index j = 0; j < 21; ++j) {
      gathered(i, j) = static_cast<double>(table(index[static_cast<std::size_t>(i)], j));
      added.value(i, j) = gathered(i, j) + static_cast<double>(before(i, j));
      added.tolerance(i, j) = precision_of<S>().eps * std::abs(added.value(i, j));
    }
  }
  auto table_there = upload(backend, table);
  auto index_there = upload(backend, index_row(index));
  auto y_there = upload(backend, before);
  ops::gather_add_rows(backend, table_there.const_view(), index_there.const_vector(),
                       y_there.view());
  CHECK(within(y_there.download(), added));
  ops::gather_rows(backend, table_there.const_view(), index_there.const_vector(), y_there.view());
  CHECK(equal(y_there.download(), gathered));
}

template <Backend B>
void gather_and_scatter(B& backend) {
  using S = scalar_t<B>;
  check_gather<S>(backend);
  if constexpr (!std::is_same_v<S, storage_t<B>>) check_gather<storage_t<B>>(backend);
  RandomStream random(13);
  const auto x = random_matrix<S>(random, 4, 21, 2), before = random_matrix<S>(random, 7, 21, 1);
  const std::vector<TokenId> index{5, 0, 6, 2};
  HostMatrix<double> expected = to_double(before);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 21; ++j) {
      expected(index[static_cast<std::size_t>(i)], j) = static_cast<double>(x(i, j));
    }
  }
  auto x_there = upload(backend, x), y_there = upload(backend, before);
  auto index_there = upload(backend, index_row(index));
  ops::scatter_rows<B>(backend, x_there.view(), index_there.vector(), y_there.view());
  CHECK(equal(y_there.download(), expected));
}

/// Rotated columns in the middle of a wider matrix, positions in no order, and parts of a head.
template <Backend B>
void rotary(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(14);
  const Index heads = 3, rows = 18;
  for (const Index pairs : {0, 1, 2, 5}) {
    const auto cosines = random_matrix<S>(random, 12, pairs);
    const auto sines = random_matrix<S>(random, 12, pairs);
    const auto x = random_matrix<S>(random, rows, heads * 10, 7);
    std::vector<TokenId> positions;
    for (Index i = 0; i < rows; ++i) positions.push_back(static_cast<TokenId>(random.below(12)));
    auto cosines_there = upload(backend, cosines), sines_there = upload(backend, sines);
    auto positions_there = upload(backend, index_row(positions));
    auto x_there = upload(backend, x);
    ops::rotate_positions<B>(backend, cosines_there.view(), sines_there.view(),
                             positions_there.vector(), heads, x_there.view());
    CHECK(within(x_there.download(), rotated(to_double(x), to_double(cosines), to_double(sines),
                                             positions, heads, precision_of<S>())));
  }
}

}  // namespace wanamaker_test::conformance
