// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/registers.h"

#include "frontend/bind/register_types.h"

namespace fuzz {

using namespace ptarmigan::ptx;

const Registers& Registers::of_kernel() {
    static const Registers registers({{"o", ScalarType::b128, 2}, {"q", ScalarType::b64, 6}, {"d", ScalarType::f64, 3}, {"e", ScalarType::s64, 2},
                                      {"r", ScalarType::b32, 10}, {"f", ScalarType::f32, 3}, {"s", ScalarType::s32, 2}, {"u", ScalarType::u32, 2},
                                      {"h", ScalarType::b16, 6}, {"w", ScalarType::u16, 2}, {"p", ScalarType::pred, 5}});
    return registers;
}

const Registers& Registers::of_function() {
    static const Registers registers({{"o", ScalarType::b128, 1}, {"q", ScalarType::b64, 3}, {"d", ScalarType::f64, 1}, {"r", ScalarType::b32, 5},
                                      {"f", ScalarType::f32, 1}, {"s", ScalarType::s32, 1}, {"h", ScalarType::b16, 3}, {"p", ScalarType::pred, 4}});
    return registers;
}

std::vector<std::string> Registers::that_fit(ScalarType type, bool wider, bool untyped) const {
    std::vector<std::string> names;
    for (const RegisterClass& c : classes_) {
        if (!register_fits(c.type, type, wider) || (untyped && type_class(c.type) != TypeClass::bits)) continue;
        // ptxas takes no wider ones for floating-point values, and none of 128 bits for narrower ones.
        if (bit_size(c.type) > bit_size(type) && (bit_size(c.type) > 64 || is_float(type) || type_class(type) == TypeClass::packed)) continue;
        for (unsigned i = 0; i < c.count; ++i) names.push_back("%" + std::string(c.prefix) + std::to_string(i));
    }
    return names;
}

std::string Registers::declarations() const {
    std::string text;
    for (const RegisterClass& c : classes_)
        text += ".reg ." + std::string(spelling(c.type)) + " %" + c.prefix + "<" + std::to_string(c.count) + ">; ";
    return text + "\n";
}

std::vector<Place> output_places(const Registers& registers) {
    std::vector<Place> places;
    unsigned offset = 0;
    for (const RegisterClass& c : registers.classes()) {
        const unsigned bytes = c.type == ScalarType::pred ? 1 : byte_size(c.type);
        for (unsigned i = 0; i < c.count; ++i, offset += bytes)
            places.push_back({"%" + std::string(c.prefix) + std::to_string(i), offset, bytes});
    }
    return places;
}

} // namespace fuzz
