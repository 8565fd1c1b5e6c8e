// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/footprint.h"

#include "runtime/texture/cube.h"
#include "runtime/texture/footprint_number.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

namespace ptarmigan::runtime {
namespace {

/// 11/16 of a cut number, and a quarter of its last place.
double eleven_sixteenths(double value) {
    return value == 0 ? 0 : cut_to_unit((11 * value + 4 * last_place(value)) / 16);
}

/// 121/512, likewise an eighth.
double middle_of_diagonal(double value) {
    return value == 0 ? 0 : cut_to_unit((121 * value + 32 * last_place(value)) / 512);
}

/// A gradient in texels, cut: what is cut off of a product is made up for by 7/8 of a unit of it.
double in_texels(double gradient, std::uint32_t size) {
    const double scale = last_place(gradient) * std::bit_floor(size);
    return cut_to_unit(cut_to_unit(gradient) * size + scale * 7 / 8);
}

/// NaN counts as 0.
float number(float value) {
    return std::isnan(value) ? 0.0f : value;
}

/// Three dimensions are sampled at neighbouring places: the gradient is what is left of it there.
double difference_of_neighbours(float at, float gradient) {
    if (std::isinf(at)) return at;
    return unit_difference(number(at + gradient), number(at));
}

/// A vector by sizes, largest first.
using Sizes = std::array<double, 3>;

Sizes sorted(Sizes v) {
    std::sort(v.begin(), v.end(), std::greater<>());
    return v;
}

/// The longest component, 11/32 of the next and 8/32 of the last.
double length_of(Sizes v) {
    v = sorted(v);
    return v[0] == 0 ? 0 : v[0] + aligned(eleven_sixteenths(v[1]) / 2 + v[2] / 4, v[0]);
}

/// 11/16 of that.
double length_of_diagonal(Sizes v) {
    v = sorted(v);
    const double longest = eleven_sixteenths(v[0]);
    return longest == 0 ? 0 : longest + aligned(middle_of_diagonal(v[1]) + eleven_sixteenths(v[2]) / 4, longest);
}

/// Two gradients of the coordinates that are sampled.
struct Gradients {
    double x[3] = {}, y[3] = {};
    bool apart = false; ///< on several faces of a cube, where their sum and difference are not looked at
};

Gradients gradients_of(const Image& image, const Fetch& fetch) {
    Gradients result;
    float at[3], to_x[3], to_y[3];
    for (unsigned i = 0; i < 3; ++i) {
        at[i] = std::bit_cast<float>(fetch.coordinate[i]);
        to_x[i] = at[i] + fetch.dpdx[i];
        to_y[i] = at[i] + fetch.dpdy[i];
    }
    if (image.cube) {
        const CubeStep x = step_between(at, to_x), y = step_between(at, to_y);
        return {{x.s, x.t, 0}, {y.s, y.t, 0}, x.beside || y.beside};
    }
    for (unsigned i = 0; i < image.dimensions; ++i) {
        const bool by_neighbours = image.dimensions == 3;
        result.x[i] = by_neighbours ? difference_of_neighbours(at[i], fetch.dpdx[i]) : number(fetch.dpdx[i]);
        result.y[i] = by_neighbours ? difference_of_neighbours(at[i], fetch.dpdy[i]) : number(fetch.dpdy[i]);
    }
    return result;
}

/// A product of cut numbers: partial products below the sixth column are left out and made up for by seven of it.
double product(double a, double b) {
    if (a == 0 || b == 0) return 0;
    int a_exponent = 0, b_exponent = 0;
    constexpr int bits = footprint_bits + 1, columns = 6;
    const auto a_bits = static_cast<std::int64_t>(std::frexp(a, &a_exponent) * (1 << bits));
    const auto b_bits = static_cast<std::int64_t>(std::frexp(b, &b_exponent) * (1 << bits));
    std::int64_t sum = 7 << columns;
    for (int i = 0; i < bits; ++i) {
        const int left_out = std::max(0, columns - i);
        if (a_bits >> i & 1) sum += (b_bits >> left_out << left_out) << i;
    }
    return std::ldexp(static_cast<double>(sum), a_exponent + b_exponent - 2 * bits);
}

/// A number and its sign.
struct Signed {
    double size = 0;
    bool negative = false;
};

/// What is left of the smaller one has one bit more.
Signed add(const Signed& a, const Signed& b) {
    const Signed& larger = a.size >= b.size ? a : b;
    const Signed& smaller = a.size >= b.size ? b : a;
    if (larger.size == 0) return larger;
    const double sum = a.negative == b.negative ? larger.size + aligned(smaller.size, larger.size)
                                                : larger.size - aligned(2 * smaller.size, larger.size) / 2;
    return {cut_to_unit(sum), larger.negative};
}

using Vector = std::array<Signed, 3>;

Sizes sizes(const Vector& v) {
    return {v[0].size, v[1].size, v[2].size};
}

Vector opposite(Vector v) {
    for (Signed& component : v) component.negative = !component.negative;
    return v;
}

Vector add(const Vector& a, const Vector& b) {
    return {add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2])};
}

/// Twice the area between two vectors of a plane.
double area(const Vector& x, const Vector& y) {
    const auto times = [](const Signed& a, const Signed& b) {
        const double size = product(a.size, b.size);
        return Signed{size == 0 ? 0 : cut_to_unit(size), a.negative != b.negative};
    };
    Signed other = times(x[1], y[0]);
    other.negative = !other.negative;
    return add(times(x[0], y[1]), other).size;
}

/// A vector of length 64 in a diameter's direction, from a table: of the larger component four bits count, of the
/// smaller one as many as lie above the last of these, and whether there is more than a quarter of that.
void point_along(const Vector& diameter, int (&direction)[2]) {
    const unsigned main = diameter[0].size >= diameter[1].size ? 0 : 1;
    const double larger = diameter[main].size, smaller = diameter[1 - main].size;
    const double unit = std::ldexp(1.0, std::ilogb(larger) - 3);
    const double along = std::floor(larger / unit) + 0.5;
    const double across = smaller < unit / 4 ? 0 : std::floor(smaller / unit) + 0.5;
    const double scale = 64 / (across == 0 ? along : std::sqrt(along * along + across * across));
    direction[main] = static_cast<int>(std::floor(along * scale + 0.5));
    direction[1 - main] = static_cast<int>(std::floor(across * scale + 0.5));
    for (unsigned i = 0; i < 2; ++i)
        if (diameter[i].negative) direction[i] = -direction[i];
}

/// Half of the diagonal of two gradients is taken for 11/16 of it.
Vector shortened(Vector diagonal) {
    for (Signed& component : diagonal) component.size = eleven_sixteenths(component.size);
    return diagonal;
}

} // namespace

int table_log2(double length) {
    int exponent = 0;
    const double fraction = std::frexp(length, &exponent) * 2 - 1;
    const double middle = std::floor(fraction * 256) + 0.5;
    const int logarithm = middle < 1 ? 0 : static_cast<int>(std::floor(std::log2(1 + middle / 256) * 256 + 0.47));
    return (exponent - 1) * 256 + std::min(logarithm, 255);
}

/// The longest diameter is taken for the longest of four: both gradients, and 11/16 of their sum and of their
/// difference.
Ellipse ellipse_of(const TextureObject& texture, const Fetch& fetch, bool with_axes) {
    const Image& image = texture.image;
    const ImageLevel& base = image.level[0];
    const bool normalized = texture.sampler.normalized || image.mipmapped || image.cube;
    const std::uint32_t size[3] = {normalized ? base.width : 1, normalized ? base.height : 1,
                                   normalized ? base.depth : 1};
    const Gradients gradients = gradients_of(image, fetch);
    Vector x, y, sum, difference;
    for (unsigned i = 0; i < image.dimensions; ++i) {
        if (std::isinf(gradients.x[i]) || std::isinf(gradients.y[i])) return {Ellipse::far_away, 0, {}};
        if (gradients.x[i] != 0) x[i] = {in_texels(std::fabs(gradients.x[i]), size[i]), gradients.x[i] < 0};
        if (gradients.y[i] != 0) y[i] = {in_texels(std::fabs(gradients.y[i]), size[i]), gradients.y[i] < 0};
    }
    if (!gradients.apart) {
        sum = add(x, y);
        difference = add(x, opposite(y));
    }
    const double x_length = length_of(sizes(x)), y_length = length_of(sizes(y));
    const double sum_length = length_of_diagonal(sizes(sum)), difference_length = length_of_diagonal(sizes(difference));
    const double longest = std::max({x_length, y_length, sum_length, difference_length});
    if (longest == 0) return {-Ellipse::far_away, 0, {}};
    Ellipse ellipse{table_log2(longest), 0, {}};
    if (!with_axes || image.dimensions == 3 || gradients.apart) return ellipse;
    const double part = area(x, y);
    ellipse.ratio = part == 0 ? Ellipse::far_away : std::max(2 * ellipse.length - table_log2(part), 0);
    const auto is_longest = [&](double length) { return length != 0 && cut_to_unit(length) == cut_to_unit(longest); };
    const bool y_first = y_length != 0 && (x_length == 0 || cut_to_unit(y_length) >= cut_to_unit(x_length));
    point_along(is_longest(x_length)     ? x
                : is_longest(sum_length) ? shortened(sum)
                : is_longest(y_length)   ? y
                                         : shortened(y_first ? opposite(difference) : difference),
                ellipse.direction);
    return ellipse;
}

} // namespace ptarmigan::runtime
