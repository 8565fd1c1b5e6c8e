// SPDX-License-Identifier: Apache-2.0
// Kernels that Triton, Numba and tinygrad wrote (generated/), run and compared with the same computation here.
#include "ptarmigan/ptarmigan.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>

namespace ptarmigan::test {

namespace {

/// Texts of newer PTX than the device's driver takes are not run.
struct Text {
    explicit Text(const std::string& name) : module(read(name), name) {
        std::istringstream first(text.substr(0, text.find('\n')));
        std::string word;
        first >> word >> word >> shared; // "// shared 16 bytes, 4 warps", of Triton's
        kernel = module.kernels().at(0);
    }
    std::string read(const std::string& name) {
        std::ifstream in(std::string(PTARMIGAN_GENERATED_DIR) + "/" + name + ".ptx");
        REQUIRE(in);
        std::stringstream all;
        all << in.rdbuf();
        return text = all.str();
    }

    std::string text;
    Module module;
    std::string kernel;
    std::uint32_t shared = 0;
};

template <typename T> Buffer upload(const std::vector<T>& values) {
    Buffer buffer(values.size() * sizeof(T));
    buffer.upload(values.data(), buffer.size());
    return buffer;
}

template <typename T> std::vector<T> download(const Buffer& buffer) {
    synchronize();
    std::vector<T> values(buffer.size() / sizeof(T));
    buffer.download(values.data(), buffer.size());
    return values;
}

/// Values with a few bits, so that sums of products are exact in any order.
std::vector<float> small_floats(std::size_t count, unsigned seed) {
    std::vector<float> values(count);
    for (float& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(static_cast<int>(seed >> 24) - 128) / 16.0f;
    }
    return values;
}

std::vector<int> integers(std::size_t count, unsigned seed, unsigned below) {
    std::vector<int> values(count);
    for (int& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<int>((seed >> 8) % below);
    }
    return values;
}

void check_near(const std::vector<float>& got, const std::vector<float>& wanted, float relative) {
    REQUIRE(got.size() >= wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        INFO("element " << i);
        REQUIRE(std::abs(got[i] - wanted[i]) <= relative * std::abs(wanted[i]) + 1e-30f);
    }
}

/// Triton's last two parameters. The texts take all of its sizes to be multiples of 16.
constexpr std::uint64_t no_scratch = 0;

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, std::size_t m, std::size_t n, std::size_t k) {
    std::vector<float> c(m * n);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t x = 0; x < k; ++x) sum += double(a[i * k + x]) * double(b[x * n + j]);
            c[i * n + j] = static_cast<float>(sum);
        }
    return c;
}

std::vector<float> softmax(const std::vector<float>& x, std::size_t columns) {
    std::vector<float> out(x.size());
    for (std::size_t row = 0; row < x.size(); row += columns) {
        const float top = *std::max_element(&x[row], &x[row] + columns);
        double sum = 0;
        for (std::size_t i = 0; i < columns; ++i) sum += std::exp(double(x[row + i]) - double(top));
        for (std::size_t i = 0; i < columns; ++i)
            out[row + i] = static_cast<float>(std::exp(double(x[row + i]) - double(top)) / sum);
    }
    return out;
}

} // namespace

TEST_CASE("triton: vector add", "[generated]") {
    Text text(GENERATE("triton/vector_add_sm75", "triton/vector_add_sm90"));
    const std::size_t n = 3008; // three programs, the last one ragged
    const auto x = small_floats(n, 1), y = small_floats(n, 2);
    const Buffer dx = upload(x), dy = upload(y), out(n * sizeof(float));
    text.module.launch(text.kernel, {3}, {128}, {dx.address(), dy.address(), out.address(), std::uint32_t(n), no_scratch, no_scratch}, text.shared);
    std::vector<float> wanted(n);
    std::transform(x.begin(), x.end(), y.begin(), wanted.begin(), std::plus<>());
    CHECK(download<float>(out) == wanted);
}

TEST_CASE("triton: softmax", "[generated]") {
    Text text(GENERATE("triton/softmax_sm75", "triton/softmax_sm90"));
    const std::size_t rows = 5, columns = 784;
    const auto x = small_floats(rows * columns, 3);
    const Buffer dx = upload(x), out(x.size() * sizeof(float));
    text.module.launch(text.kernel, {rows}, {128},
                       {out.address(), dx.address(), std::uint32_t(columns), std::uint32_t(columns), no_scratch, no_scratch}, text.shared);
    check_near(download<float>(out), softmax(x, columns), 2e-6f);
}

TEST_CASE("triton: matrix product in f32", "[generated]") {
    Text text("triton/matmul_f32_sm75");
    const std::size_t m = 80, n = 48, k = 48; // no multiple of the tile's 32 and 32
    const auto a = small_floats(m * k, 4), b = small_floats(k * n, 5);
    const Buffer da = upload(a), db = upload(b), out(m * n * sizeof(float));
    text.module.launch(text.kernel, {3, 2}, {128},
                       {da.address(), db.address(), out.address(), std::uint32_t(m), std::uint32_t(n), std::uint32_t(k), no_scratch, no_scratch},
                       text.shared);
    CHECK(download<float>(out) == product(a, b, m, n, k));
}

TEST_CASE("triton: atomics", "[generated]") {
    Text text(GENERATE("triton/atomics_sm75", "triton/atomics_sm90"));
    const std::size_t n = 1008;
    const auto x = integers(n, 6, 5000);
    const Buffer dx = upload(x), histogram(256 * 4), top(4), total(4), swap(8);
    text.module.launch(text.kernel, {4}, {128},
                       {dx.address(), histogram.address(), top.address(), total.address(), swap.address(), std::uint32_t(n), no_scratch, no_scratch},
                       text.shared);
    std::vector<int> wanted(256);
    for (int value : x) ++wanted[static_cast<std::size_t>(value & 255)];
    CHECK(download<int>(histogram) == wanted);
    CHECK(download<int>(top)[0] == *std::max_element(x.begin(), x.end()));
    CHECK(download<float>(total)[0] == static_cast<float>(std::accumulate(x.begin(), x.end(), 0)));
    CHECK(download<int>(swap)[1] == int(n));
}

TEST_CASE("triton: prefix sums and sorting", "[generated]") {
    Text text("triton/scan_sm80");
    const auto x = small_floats(128, 7);
    const Buffer dx = upload(x), out(256 * sizeof(float));
    text.module.launch(text.kernel, {1}, {128}, {out.address(), dx.address(), no_scratch, no_scratch}, text.shared);
    std::vector<float> wanted(128), sorted = x;
    std::partial_sum(x.begin(), x.end(), wanted.begin());
    std::sort(sorted.begin(), sorted.end());
    wanted.insert(wanted.end(), sorted.begin(), sorted.end());
    CHECK(download<float>(out) == wanted);
}

TEST_CASE("triton: largest of each row, and where", "[generated]") {
    Text text("triton/argmax_sm90");
    const std::size_t rows = 4, columns = 704;
    const auto x = small_floats(rows * columns, 8);
    const Buffer dx = upload(x), best(rows * 4), index(rows * 4);
    text.module.launch(text.kernel, {rows}, {128},
                       {best.address(), index.address(), dx.address(), std::uint32_t(columns), no_scratch, no_scratch}, text.shared);
    const auto values = download<float>(best);
    const auto places = download<int>(index);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto first = x.begin() + long(row * columns), found = std::max_element(first, first + long(columns));
        CHECK(values[row] == *found);
        CHECK(places[row] == found - first); // the first of equal ones
    }
}

TEST_CASE("triton: transpose", "[generated]") {
    Text text("triton/transpose_sm90");
    const std::size_t m = 64, n = 96;
    const auto x = small_floats(m * n, 9);
    const Buffer dx = upload(x), out(x.size() * sizeof(float));
    text.module.launch(text.kernel, {2, 3}, {128},
                       {out.address(), dx.address(), std::uint32_t(m), std::uint32_t(n), no_scratch, no_scratch}, text.shared);
    std::vector<float> wanted(x.size());
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) wanted[j * m + i] = x[i * n + j];
    CHECK(download<float>(out) == wanted);
}

namespace {
/// Numba's array: what it counts references with, the parent, elements, bytes of one, data, then sizes and strides.
struct Array {
    std::uint64_t references = 0, parent = 0, count, bytes, data;
};
Array array(const Buffer& buffer, std::size_t bytes) {
    return {0, 0, buffer.size() / bytes, bytes, buffer.address()};
}
#define ARRAY(a, element) \
    (a).references, (a).parent, (a).count, (a).bytes, (a).data, (a).count, std::uint64_t(element)
} // namespace

TEST_CASE("numba: a x plus y", "[generated]") {
    Text text(GENERATE("numba/axpy_f32_sm75", "numba/axpy_f32_sm90"));
    const std::size_t n = 1000;
    const auto x = small_floats(n, 10), y = small_floats(n, 11);
    const Buffer dx = upload(x), dy = upload(y), out(n * 4);
    const Array ax = array(dx, 4), ay = array(dy, 4), ar = array(out, 4);
    text.module.launch(text.kernel, {8}, {128}, {ARRAY(ar, 4), 2.0f, ARRAY(ax, 4), ARRAY(ay, 4)});
    std::vector<float> wanted(n);
    for (std::size_t i = 0; i < n; ++i) wanted[i] = 2 * x[i] + y[i];
    CHECK(download<float>(out) == wanted);
}

TEST_CASE("numba: tiled matrix product", "[generated]") {
    Text text(GENERATE("numba/matmul_sm75", "numba/matmul_sm90"));
    const std::size_t m = 40, n = 24, k = 33;
    const auto a = small_floats(m * k, 12), b = small_floats(k * n, 13);
    const Buffer da = upload(a), db = upload(b), out(m * n * 4);
    const auto matrix = [](const Buffer& buffer) { return array(buffer, 4); };
    const Array aa = matrix(da), ab = matrix(db), ac = matrix(out);
#define MATRIX(x, rows, columns) \
    (x).references, (x).parent, (x).count, (x).bytes, (x).data, std::uint64_t(rows), std::uint64_t(columns), std::uint64_t(columns) * 4, std::uint64_t(4)
    text.module.launch(text.kernel, {2, 3}, {16, 16}, {MATRIX(aa, m, k), MATRIX(ab, k, n), MATRIX(ac, m, n)});
#undef MATRIX
    CHECK(download<float>(out) == product(a, b, m, n, k));
}

TEST_CASE("numba: histogram", "[generated]") {
    Text text("numba/histogram_sm90");
    const std::size_t n = 5000;
    const auto x = small_floats(n, 14);
    const Buffer dx = upload(x), bins(16 * 4);
    const Array ax = array(dx, 4), ab = array(bins, 4);
    text.module.launch(text.kernel, {4}, {64}, {ARRAY(ax, 4), ARRAY(ab, 4), -8.0f, 8.0f});
    std::vector<int> wanted(16);
    for (float value : x) ++wanted[static_cast<std::size_t>(value + 8.0f)];
    CHECK(download<int>(bins) == wanted);
}

TEST_CASE("numba: sums of blocks in dynamic shared memory", "[generated]") {
    Text text("numba/dynamic_shared_sm90");
    std::vector<double> x(512);
    std::iota(x.begin(), x.end(), 0.5);
    const Buffer dx = upload(x), out(4 * 8);
    const Array ax = array(dx, 8), ar = array(out, 8);
    text.module.launch(text.kernel, {4}, {128}, {ARRAY(ar, 8), ARRAY(ax, 8)}, 128 * 8);
    std::vector<double> wanted(4);
    for (std::size_t i = 0; i < x.size(); ++i) wanted[i / 128] += x[i];
    CHECK(download<double>(out) == wanted);
}

TEST_CASE("numba: arrays of threads", "[generated]") {
    Text text("numba/local_sort_sm90");
    auto x = integers(64 * 8, 15, 1000000);
    const Buffer dx = upload(x), out(x.size() * 4);
    const Array ax = array(dx, 4), ar = array(out, 4);
    text.module.launch(text.kernel, {2}, {32}, {ARRAY(ar, 4), ARRAY(ax, 4)});
    for (auto first = x.begin(); first != x.end(); first += 8) std::sort(first, first + 8);
    CHECK(download<int>(out) == x);
}

TEST_CASE("tinygrad: add, sum, softmax, matrix product", "[generated]") {
    SECTION("add") {
        Text text(GENERATE("tinygrad/add0_sm75", "tinygrad/add0_sm90"));
        const auto x = small_floats(1000, 16), y = small_floats(1000, 17);
        const Buffer dx = upload(x), dy = upload(y), out(4000);
        text.module.launch(text.kernel, {125}, {2}, {out.address(), dx.address(), dy.address()}); // E_125_2_4
        std::vector<float> wanted(1000);
        std::transform(x.begin(), x.end(), y.begin(), wanted.begin(), std::plus<>());
        CHECK(download<float>(out) == wanted);
    }
    SECTION("sum") {
        Text text("tinygrad/sum0_sm90");
        const auto x = small_floats(4096, 18);
        const Buffer dx = upload(x), out(4);
        text.module.launch(text.kernel, {1}, {16}, {out.address(), dx.address()}); // r_16_256
        CHECK(download<float>(out)[0] == std::accumulate(x.begin(), x.end(), 0.0f));
    }
    SECTION("largest of each row, the first step of a softmax") {
        Text text("tinygrad/softmax0_sm90");
        const auto x = small_floats(64 * 128, 19);
        const Buffer dx = upload(x), out(64 * 4);
        text.module.launch(text.kernel, {64}, {16}, {out.address(), dx.address()}); // r_64_16_8
        std::vector<float> wanted;
        for (auto first = x.begin(); first != x.end(); first += 128) wanted.push_back(*std::max_element(first, first + 128));
        CHECK(download<float>(out) == wanted);
    }
    SECTION("matrix product") {
        Text text("tinygrad/matmul_f320_sm75");
        const auto a = small_floats(128 * 128, 20), b = small_floats(128 * 128, 21);
        const Buffer da = upload(a), db = upload(b), out(128 * 128 * 4);
        const std::size_t blocks = text.kernel == "r_4_2_8_16_4_4_32_4" ? 4 : 0; // the name's first sizes are the grid's and block's
        REQUIRE(blocks != 0);
        text.module.launch(text.kernel, {2, 4}, {8, 16}, {out.address(), da.address(), db.address()});
        CHECK(download<float>(out) == product(a, b, 128, 128, 128));
    }
}

} // namespace ptarmigan::test
