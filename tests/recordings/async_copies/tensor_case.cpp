// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/async_copies/tensor_case.h"

#include <algorithm>
#include <cstring>

namespace async_recording {

using recordings::Random;

unsigned element_bytes(unsigned type) {
    constexpr unsigned bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type < 13 ? bytes[type] : 0;
}

namespace {

bool is_float(unsigned type) { return type >= 6 && type <= 12; }

unsigned between(Random& random, unsigned low, unsigned high) { return low + random.below(high - low + 1); }

/// Strides for packed dimensions with some padding, multiples of 16 or 32.
void set_strides(MapCase& m, Random& random) {
    const std::uint64_t unit = m.interleave == 2 ? 32 : 16;
    std::uint64_t bytes = m.dim[0] * std::max(1u, element_bytes(m.type));
    for (unsigned i = 0; i + 1 < m.rank; ++i) {
        bytes = (bytes + unit - 1) / unit * unit + unit * random.below(3);
        m.stride[i] = bytes;
        bytes *= m.dim[i + 1];
    }
}

void set_layout(MapCase& m, Random& random, bool interleaved) {
    m.interleave = interleaved ? 1 + random.below(2) : 0;
    m.swizzle = random.below(4);
    if (m.interleave == 2) m.swizzle = 1;
    m.promotion = random.below(4);
    m.fill = is_float(m.type) ? random.below(2) : 0;
}

unsigned inner_limit(const MapCase& m, unsigned plain) {
    if (m.interleave) return m.interleave * 16;
    constexpr unsigned limits[] = {0, 32, 64, 128};
    return m.swizzle ? limits[m.swizzle] : plain;
}

} // namespace

MapCase map_case(unsigned index) {
    Random random(0x7a9 + index * 977ull);
    MapCase m;
    m.kind = index % 8 < 4 ? MapCase::Kind::tiled : index % 8 < 6 ? MapCase::Kind::im2col : MapCase::Kind::im2col_wide;
    const bool im2col = m.kind != MapCase::Kind::tiled;
    m.type = random.below(13);
    const bool interleaved = m.kind != MapCase::Kind::im2col_wide && random.below(5) == 0;
    m.rank = im2col || interleaved ? between(random, 3, 5) : between(random, 1, 5);
    set_layout(m, random, interleaved);
    if (m.kind == MapCase::Kind::im2col_wide) m.swizzle = between(random, 2, 3);
    m.address = (random.bits() & 0x7fffffffffffull) & ~31ull;
    const unsigned size = element_bytes(m.type), unit = std::max(1u, 16 / size);
    m.dim[0] = std::uint64_t{unit} * between(random, 1, 300);
    for (unsigned i = 1; i < m.rank; ++i) m.dim[i] = between(random, 1, 1u << between(random, 1, 10));
    set_strides(m, random);
    const unsigned limit = inner_limit(m, 512) / size;
    m.box[0] = std::min(256u, unit * between(random, 1, std::max(1u, limit / unit)));
    for (unsigned i = 1; i < m.rank; ++i) m.box[i] = between(random, 1, i < 3 ? 16 : 3);
    for (unsigned i = 0; i < m.rank; ++i) m.element_stride[i] = random.below(4) ? 1 : between(random, 1, 8);
    const int reach = m.rank == 3 ? 300 : m.rank == 4 ? 100 : 14;
    for (unsigned i = 0; i < 3; ++i) {
        m.lower[i] = int(random.below(2 * unsigned(reach))) - reach;
        m.upper[i] = int(random.below(2 * unsigned(reach))) - reach;
    }
    m.channels = m.box[0];
    m.pixels = between(random, 1, 256);
    m.mode = random.below(2);
    // One argument in three cases of eight is at or beyond a limit.
    if (index % 8 % 3 == 2) {
        const unsigned d = random.below(m.rank);
        switch (random.below(20)) {
        case 0: m.type = between(random, 12, 16); break;
        case 1: m.rank = random.below(7); break;
        case 2: m.address |= 1ull << between(random, 0, 4); break;
        case 3: m.dim[d] = random.below(2) ? 0 : (1ull << 32) + random.below(2); break;
        case 4: m.stride[d % 4] += 8; break;
        case 5: m.stride[d % 4] = (1ull << 40) - 16 * random.below(2); break;
        case 6: m.box[d] = random.below(2) ? 0 : 256 + random.below(2); break;
        case 7: m.box[0] += 1; break;
        case 8: m.element_stride[d] = random.below(2) ? 0 : 8 + random.below(2); break;
        case 9: m.interleave = between(random, 0, 3); break;
        case 10: m.swizzle = between(random, 0, 7); break;
        case 11: m.promotion = 4; break;
        case 12: m.fill = between(random, 1, 2); break;
        case 13: m.channels = random.below(2) ? 0 : between(random, 250, 260); break;
        case 14: m.pixels = random.below(2) ? 0 : between(random, 1023, 1025); break;
        case 15: m.lower[random.below(3)] = -(1 << between(random, 3, 16)) - int(random.below(2)); break;
        case 16: m.upper[random.below(3)] = (1 << between(random, 3, 16)) - int(random.below(2)); break;
        case 17: m.mode = 2; break;
        case 18: m.address = ~0ull << between(random, 45, 56); break;
        case 19: m.swizzle = random.below(2); break;
        }
    }
    return m;
}

namespace {

struct Class {
    const char* name;
    const char* direction;
    unsigned count;
};
constexpr Class classes[] = {{"tile", "load", 500},        {"stride", "load", 200},   {"interleave", "load", 260},
                             {"im2col", "load", 500},      {"tile", "store", 240},    {"stride", "store", 80},
                             {"interleave", "store", 80},  {"im2col", "store", 120},  {"tile", "reduce", 360},
                             {"im2col", "reduce", 60},     {"large", "load", 40}};

const Class* class_at(unsigned& index) {
    for (const Class& c : classes) {
        if (index < c.count) return &c;
        index -= c.count;
    }
    return nullptr;
}

/// Types (CUtensorMapDataType) that reductions of the name take, in turn.
struct Reduction {
    const char* name;
    std::array<int, 8> types;
};
constexpr Reduction reductions[] = {{"add", {2, 3, 4, 7, 6, 9, 10, -1}}, {"min", {2, 3, 4, 5, 6, 9, -1, -1}},
                                    {"max", {2, 3, 4, 5, 6, 9, -1, -1}}, {"inc", {2, -1, -1, -1, -1, -1, -1, -1}},
                                    {"dec", {2, -1, -1, -1, -1, -1, -1, -1}}, {"and", {2, 4, 2, 4, -1, -1, -1, -1}},
                                    {"or", {2, 4, 2, 4, -1, -1, -1, -1}},   {"xor", {2, 4, 2, 4, -1, -1, -1, -1}}};

std::uint64_t extent(const MapCase& m) {
    std::uint64_t bytes = m.dim[0] * element_bytes(m.type);
    if (m.interleave) bytes = 32;
    for (unsigned i = 1; i < m.rank; ++i) bytes += (m.dim[i] - 1) * m.stride[i - 1];
    if (m.interleave) // room for slices at any place they could be
        bytes += (m.dim[0] * element_bytes(m.type) / 16 + 1) * m.stride[m.rank - 2];
    return bytes;
}

int near(Random& random, std::uint64_t size, std::uint32_t box) {
    switch (random.below(6)) {
    case 0: return 0;
    case 1: return -int(random.below(box + 2));
    case 2: return int(size) - int(random.below(box + 1));
    case 3: return int(size) + int(random.below(3));
    default: return int(random.below(unsigned(size)));
    }
}

/// Rows begin at 16 bytes, and what is written at no negative coordinate; the H200 stops the grid otherwise (async_faults).
void keep_legal(CopyCase& c) {
    const int unit = std::max(1, 16 / int(element_bytes(c.map.type)));
    if (c.map.interleave == 0) c.coordinates[0] = c.coordinates[0] / unit * unit;
    if (c.direction == "load") return;
    for (std::int32_t& at : c.coordinates) at = std::max(at, 0);
}

void shape_tile(CopyCase& c, Random& random, const std::string& name) {
    MapCase& m = c.map;
    const bool large = name == "large";
    const unsigned size = element_bytes(m.type), unit = std::max(1u, 16 / size);
    const unsigned limit = inner_limit(m, large ? 512 : 96) / size;
    do {
        m.dim[0] = name == "interleave" ? std::uint64_t{std::max(1u, m.interleave * 16 / size)} * between(random, 1, 4)
                                        : between(random, 1, std::max(2u, (large ? 600 : 200) / size));
        for (unsigned i = 1; i < m.rank; ++i) m.dim[i] = between(random, 1, large ? 60 : m.rank < 4 ? 14 : 5);
        set_strides(m, random);
    } while (extent(m) > tensor_bytes - 4096);
    do {
        m.box[0] = std::min(256u, unit * between(random, 1, std::max(1u, limit / unit)));
        if (name == "interleave" && random.below(2)) m.box[0] = m.interleave * 16 / size;
        for (unsigned i = 1; i < m.rank; ++i) m.box[i] = between(random, 1, large ? (m.rank < 3 ? 64 : 12) : m.rank < 3 ? 16 : m.rank < 4 ? 6 : 3);
        for (unsigned i = 0; i < m.rank; ++i)
            m.element_stride[i] = name == "stride" && random.below(2) ? between(random, 1, 8) : 1;
        if (name == "stride" || name == "interleave")
            for (unsigned i = 1; i < m.rank; ++i) m.box[i] = std::min<unsigned>(m.box[i] * between(random, 1, 3), 64);
        if (name == "interleave" && random.below(4) == 0)
            for (unsigned i = 0; i < m.rank; ++i) m.element_stride[i] = between(random, 1, 3);
    } while (box_bytes(c) > (large ? 16384u : 3072u));
    const bool outside = c.direction == "load" || random.below(2);
    for (unsigned i = 0; i < m.rank; ++i)
        c.coordinates[i] = outside ? near(random, m.dim[i], m.box[i]) : int(random.below(unsigned(m.dim[i])));
    keep_legal(c);
}

void shape_im2col(CopyCase& c, Random& random) {
    MapCase& m = c.map;
    const unsigned size = element_bytes(m.type), unit = std::max(1u, 16 / size);
    const unsigned limit = inner_limit(m, 96) / size;
    m.dim[0] = m.interleave ? std::uint64_t{std::max(1u, m.interleave * 16 / size)} * between(random, 1, 4) : between(random, 1, 120 / size + 1);
    for (unsigned i = 1; i < m.rank; ++i) m.dim[i] = between(random, 2, m.rank == 5 ? 5 : 9);
    set_strides(m, random);
    m.channels = unit * between(random, 1, std::max(1u, limit / unit));
    m.pixels = between(random, 1, std::min(96u, 3072 / (m.channels * size)));
    const unsigned spatial = m.rank - 2;
    for (unsigned i = 0; i < m.rank; ++i)
        m.element_stride[i] = i != 0 && i != m.rank - 1 && random.below(3) == 0 ? between(random, 1, 3) : 1;
    for (unsigned i = 0; i < spatial; ++i) {
        // A box of at least one pixel: dim + upper - lower > 0.
        const unsigned dimension = m.interleave ? i : 1 + i; // of interleaved tensors W is the first
        const int size_here = int(m.dim[dimension]);
        m.lower[i] = c.direction == "load" ? int(random.below(5)) - 3 : int(random.below(2));
        m.upper[i] = c.direction == "load" ? int(random.below(5)) - 3 : -int(random.below(2));
        if (size_here + m.upper[i] - m.lower[i] <= 0) m.lower[i] = m.upper[i] = 0;
        const int width = size_here + m.upper[i] - m.lower[i];
        c.coordinates[dimension] = m.lower[i] + int(random.below(unsigned(width)));
        c.offsets[i] = random.below(2) ? 0 : random.below(4);
    }
    if (m.interleave)
        c.coordinates[m.rank - 2] = int(random.below(unsigned(m.dim[m.rank - 2])));
    else
        c.coordinates[0] = c.direction == "load" ? near(random, m.dim[0], m.channels) : int(random.below(unsigned(m.dim[0])));
    keep_legal(c);
    c.coordinates[m.rank - 1] = c.direction == "load" && random.below(4) == 0 ? near(random, m.dim[m.rank - 1], 2)
                                                                           : int(random.below(unsigned(m.dim[m.rank - 1])));
}

} // namespace

std::uint32_t box_bytes(const CopyCase& c) {
    const MapCase& m = c.map;
    const std::uint32_t size = element_bytes(m.type), slice = m.interleave * 16;
    if (m.kind == MapCase::Kind::im2col) return m.interleave ? m.pixels * slice : m.channels * m.pixels * size;
    // Interleaved tensors: dimension 0 counts slices, and of the slices of channels one is copied.
    std::uint32_t bytes = m.interleave ? slice * ((m.box[0] + m.element_stride[0] - 1) / m.element_stride[0]) : m.box[0] * size;
    for (unsigned i = 1; i < m.rank; ++i)
        if (!m.interleave || i != m.rank - 2) bytes *= (m.box[i] + m.element_stride[i] - 1) / m.element_stride[i];
    return bytes;
}

std::string class_of(unsigned index) {
    const Class* kind = class_at(index);
    return kind ? kind->name : "";
}

CopyCase copy_case(unsigned index) {
    Random random(0x51ce + index * 7919ull);
    const Class* kind = class_at(index);
    CopyCase c;
    c.direction = kind->direction;
    MapCase& m = c.map;
    const std::string name = kind->name;
    m.type = random.below(13);
    if (c.direction == "reduce") {
        const Reduction& reduction = reductions[index % 8];
        c.direction = reduction.name;
        unsigned count = 0;
        while (count < 8 && reduction.types[count] >= 0) ++count;
        m.type = unsigned(reduction.types[index / 8 % count]);
    }
    const bool im2col = name == "im2col";
    if (im2col) m.kind = MapCase::Kind::im2col;
    const bool interleaved = name == "interleave" || (im2col && random.below(6) == 0);
    m.rank = im2col || interleaved ? between(random, 3, 5) : between(random, 1, 5);
    set_layout(m, random, interleaved);
    c.data_seed = random.bits();
    c.shared_offset = 128 * (random.below(3) ? 0 : random.below(16));
    if (im2col)
        shape_im2col(c, random);
    else
        shape_tile(c, random, name);
    return c;
}

std::string describe(const CopyCase& c) {
    const MapCase& m = c.map;
    std::string text = c.direction + (m.kind == MapCase::Kind::im2col ? " im2col" : " tile") + " type " + std::to_string(m.type);
    const auto list = [&](const char* name, const auto& values, unsigned count) {
        text += std::string(" ") + name + " ";
        for (unsigned i = 0; i < count; ++i) text += (i ? "," : "") + std::to_string(values[i]);
    };
    list("dim", m.dim, m.rank);
    list("stride", m.stride, m.rank - 1);
    if (m.kind == MapCase::Kind::tiled) list("box", m.box, m.rank);
    list("step", m.element_stride, m.rank);
    text += " interleave " + std::to_string(m.interleave) + " swizzle " + std::to_string(m.swizzle) + " fill " + std::to_string(m.fill);
    if (m.kind == MapCase::Kind::im2col) {
        list("lower", m.lower, m.rank - 2);
        list("upper", m.upper, m.rank - 2);
        text += " channels " + std::to_string(m.channels) + " pixels " + std::to_string(m.pixels);
        list("offsets", c.offsets, m.rank - 2);
    }
    list("at", c.coordinates, m.rank);
    return text + " shared " + std::to_string(c.shared_offset);
}

namespace {

std::uint64_t special_element(Random& random, unsigned type) {
    static constexpr std::uint32_t floats[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, 0x00000001, 0x80000001, 0x007fffff,
                                               0x7f7fffff, 0xff7fffff, 0x00800000, 0x80800000, 0x80000000, 0x3f800000, 0x00000000, 0x7fffffff};
    static constexpr std::uint16_t halves[] = {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfe12, 0x0001, 0x8001, 0x03ff,
                                               0x7bff, 0xfbff, 0x0400, 0x8000, 0x3c00, 0x0000, 0x3c01, 0x7fff};
    static constexpr std::uint16_t brains[] = {0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffc1, 0x0001, 0x8001, 0x007f,
                                               0x7f7f, 0xff7f, 0x0080, 0x8000, 0x3f80, 0x0000, 0x3f81, 0x7fff};
    const std::uint64_t bits = random.bits();
    const unsigned which = random.below(16);
    const bool special = random.below(3) == 0;
    switch (type) {
    case 6: return special ? halves[which] : random.below(2) ? (bits & 0x8000) | 0x3400 | (bits & 0xfff) : bits & 0xffff;
    case 9: return special ? brains[which] : random.below(2) ? (bits & 0x8000) | 0x3f00 | (bits & 0xff) : bits & 0xffff;
    case 7:
    case 10:
        return special ? floats[which] : random.below(2) ? (bits & 0x80000000) | 0x3f000000 | (bits & 0xffffff) : bits & 0xffffffff;
    default: return special ? std::uint64_t(std::int64_t(which) - 8) : random.below(4) ? bits : bits & 0xff;
    }
}

} // namespace

std::vector<std::uint8_t> data_of(const CopyCase& c, std::uint64_t salt, unsigned count) {
    Random random(c.data_seed + salt);
    std::vector<std::uint8_t> data(count);
    const unsigned size = element_bytes(c.map.type);
    const bool reduces = c.direction != "load" && c.direction != "store";
    for (unsigned i = 0; i < count; i += size) {
        const std::uint64_t value = reduces || c.map.type == 10 || c.map.type == 12 || c.map.type == 11 || c.map.type == 7
                                        ? special_element(random, c.map.type > 10 ? 7 : c.map.type)
                                        : random.bits();
        std::memcpy(data.data() + i, &value, std::min(size, count - i));
    }
    return data;
}

} // namespace async_recording
