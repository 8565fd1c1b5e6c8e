// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/list_sizes.h"

#include "frontend/isa/matrix_shape.h"
#include "frontend/isa/words.h"

#include <algorithm>
#include <charconv>

namespace ptarmigan::ptx {

namespace {

/// The words of an instruction, asked for by spelling.
class Words {
public:
    explicit Words(const HeadMatch& match)
        : words_(match.modifiers.data(), match.modifiers.data() + match.modifier_count) {}

    bool has(std::string_view word) const {
        return std::any_of(words_.begin(), words_.end(), [&](Modifier m) { return spelling(m) == word; });
    }
    /// The number in the first word that starts with `before` and then has digits only (but for
    /// `after`); 0 if there is none.
    unsigned number(std::string_view before, std::string_view after = "") const {
        for (Modifier m : words_) {
            const std::string_view word = spelling(m);
            if (word.size() <= before.size() + after.size() || !word.starts_with(before) || !word.ends_with(after))
                continue;
            unsigned value = 0;
            const char* last = word.data() + word.size() - after.size();
            if (std::from_chars(word.data() + before.size(), last, value).ptr == last) return value;
        }
        return 0;
    }
    std::span<const Modifier> all() const { return words_; }

private:
    std::span<const Modifier> words_;
};

/// Bits of an element of A or B. Types of less than 8 bits are modifiers in some rows; the kinds
/// with mixed formats keep every element in a byte.
unsigned element_bits(const Words& words, ScalarType type) {
    if (words.has("b1")) return 1;
    if (words.has("u4") || words.has("s4")) return 4;
    if (words.has("kind::f8f6f4") || words.has("kind::mxf8f6f4")) return 8;
    return bit_size(type);
}

/// Registers per lane for `elements` of `bits` spread over `lanes`; f64 has registers of its own.
unsigned registers(unsigned elements, unsigned bits, unsigned lanes) {
    return elements * bits / (lanes * (bits == 64 ? 64 : 32));
}

unsigned mma_size(const HeadMatch& match, const Words& words, Role role) {
    const MatrixShape shape = matrix_shape(words.all());
    const bool old = shape.m == 8 && match.types[1] == ScalarType::f16; // m8n8k4 of sm_70
    const bool sparse = words.has("sp") || words.has("sp::ordered_metadata");
    const unsigned bits = element_bits(words, match.types[1]);
    const unsigned types = match.types[3] != ScalarType::none ? 3 : 1; // .s32.u4.u4.s32: two types
    switch (role) {
    case Role::d: return registers(shape.m * shape.n, bit_size(match.types[0]), old ? 8 : 32);
    case Role::c: return registers(shape.m * shape.n, bit_size(match.types[types]), old ? 8 : 32);
    case Role::a: return old ? 2 : registers(shape.m * shape.k / (sparse ? 2 : 1), bits, 32);
    case Role::b: return old ? 2 : registers(shape.k * shape.n, bits, 32);
    default: return 0;
    }
}

unsigned wmma_size(const HeadMatch& match, const Words& words, Role role) {
    const MatrixShape shape = matrix_shape(words.all());
    const bool is_mma = words.has("mma");
    char matrix = 'd';
    if (is_mma) {
        if (role == Role::a || role == Role::b) matrix = role == Role::a ? 'a' : 'b';
    } else if (words.has("a") || words.has("b")) {
        matrix = words.has("a") ? 'a' : 'b';
    }
    const bool only_results = is_mma && match.types[2] == ScalarType::none && !words.has("b1") && !words.has("s4") &&
                              !words.has("u4"); // .dtype.ctype: A and B are f16
    if (matrix == 'd') {
        ScalarType type = match.types[0];
        if (only_results && role == Role::c) type = match.types[1];
        return registers(shape.m * shape.n, bit_size(type), 32);
    }
    ScalarType type = is_mma ? match.types[1] : match.types[0];
    if (only_results) type = ScalarType::f16;
    // Fragments of f16 hold each element twice.
    if (type == ScalarType::f16) return 8;
    const unsigned bits = element_bits(words, type);
    return registers(matrix == 'a' ? shape.m * shape.k : shape.k * shape.n, bits, 32);
}

unsigned tensor_size(const Words& words, Role role) {
    const unsigned dimensions = words.number("", "d");
    const bool wide = words.has("im2col::w") || words.has("im2col::w::128");
    if (role == Role::offsets) return wide ? 2 : dimensions - 2;
    if (role != Role::c) return 0;
    return words.has("tile::gather4") || words.has("tile::scatter4") ? 5 : dimensions;
}

unsigned tcgen05_size(const Words& words, Role role) {
    if (role == Role::lanes) return words.has("cta_group::2") ? 8 : 4;
    if (role != Role::d && role != Role::b) return 0;
    const unsigned repeat = words.number("x");
    return words.has("16x128b") ? 2 * repeat : words.has("16x256b") ? 4 * repeat : repeat;
}

/// Coordinates of a texture or surface of the geometry; 3-d and array ones have four places.
unsigned texture_size(const Words& words, Role role, bool is_surface) {
    const bool one = words.has("1d"), two = words.has("2d"), array_1d = words.has("a1d");
    const unsigned places = one ? 1 : two || array_1d ? 2 : 4;
    const unsigned gradient = one || array_1d ? 1 : two || words.has("a2d") ? 2 : 4;
    switch (role) {
    case Role::b: return is_surface ? places : 0;
    case Role::c: return is_surface ? 0 : places;
    case Role::dpdx:
    case Role::dpdy: return gradient;
    case Role::e: return gradient;
    default: return 0;
    }
}

} // namespace

unsigned list_size(const HeadMatch& match, Role role) {
    const Words words(match);
    const std::string_view opcode = form_info(match.form).opcode;
    if (role == Role::ids_a || role == Role::ids_b) return 2;
    if (opcode == "mma") return mma_size(match, words, role);
    if (opcode == "wmma") return wmma_size(match, words, role);
    if (opcode == "wgmma") {
        const MatrixShape shape = matrix_shape(words.all());
        if (role == Role::a) return 4;
        return role == Role::d ? registers(shape.m * shape.n, bit_size(match.types[0]), 128) : 0;
    }
    if (opcode == "ldmatrix" || opcode == "stmatrix") {
        const unsigned count = words.number("x");
        return words.has("m16n16") ? 2 * count : count;
    }
    if (opcode == "tcgen05") return tcgen05_size(words, role);
    if (opcode == "cp") return tensor_size(words, role);
    if (opcode == "tex" || opcode == "tld4")
        return role == Role::d ? match.vector_size : texture_size(words, role, false);
    if (opcode == "suld" || opcode == "sust" || opcode == "sured") return texture_size(words, role, true);
    if (opcode == "cvt" && role == Role::a) return 4; // cvt.rs to four small floats
    return 0;
}

bool has_spare_elements(const HeadMatch& match) {
    const FormInfo& info = form_info(match.form);
    return info.opcode == "mma" && Words(match).has("m16n8k16") && bit_size(match.types[1]) == 8 &&
           is_float(match.types[1]);
}

/// ptxas takes more coordinates than the geometry has, 2 or 4; nvcc writes four for cubes and 3-d ones.
unsigned required_elements(const HeadMatch& match, const OperandPattern& pattern, unsigned written) {
    const unsigned size = list_size(match, pattern.role);
    const std::string_view chapter = form_info(match.form).chapter;
    if (pattern.role == Role::b && size == 1 && (written == 2 || written == 4) && has_spare_elements(match))
        return written;
    const bool surface_value = chapter == "surface" && pattern.role != Role::b;
    if (surface_value && size == 0) return written == 4 ? 4 : 2;
    const bool coordinates = !pattern.is_destination && pattern.role != Role::dpdx && pattern.role != Role::dpdy &&
                             (chapter == "texture" || chapter == "surface");
    return coordinates && written > size && (written == 2 || written == 4) ? written : size;
}

} // namespace ptarmigan::ptx
