// SPDX-License-Identifier: Apache-2.0
// Rules of textures and surfaces.
//
// The object is a number of 20 bits that stands in the constant bank, in a register (.B) or in a uniform register.
// Operands are a list: layer, coordinates, the object with .B, the level. With .SCR the list lies in two registers or
// pairs, by what fits; without it the layer and the coordinates lie behind the first register, the rest behind the
// second. A fetch from one dimension is one from two whose second coordinate is zero. Results are in a pair and a
// second one.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

struct Shape {
    std::string_view name;
    const char* ptx;
    unsigned coordinates;
    bool has_layer;
};

constexpr Shape textures[] = {
    {"1D", "1d", 1, false},           {"2D", "2d", 2, false},       {"3D", "3d", 3, false},
    {"ARRAY_1D", "a1d", 1, true},     {"ARRAY_2D", "a2d", 2, true}, {"CUBE", "cube", 3, false},
    {"ARRAY_CUBE", "acube", 3, true},
};
constexpr Shape surfaces[] = {
    {"1D", "1d", 1, false},       {"2D", "2d", 2, false},       {"3D", "3d", 3, false},
    {"1D_ARRAY", "a1d", 1, true}, {"2D_ARRAY", "a2d", 2, true},
};

template <std::size_t Count> const Shape* shape_of(const Shape (&shapes)[Count], const Instruction& inst) {
    for (const Shape& shape : shapes)
        if (inst.has(shape.name)) return &shape;
    return nullptr;
}

/// The vector that PTX takes: one, two or four elements.
std::string vector_of(std::vector<std::string> elements) {
    if (elements.size() == 3) elements.push_back(elements.back());
    std::string text = "{";
    for (const std::string& element : elements) text += (text.size() > 1 ? ", " : "") + element;
    return text + "}";
}

/// .B: the object stands in a register.
bool has_object_register(const Instruction& inst) {
    return inst.architecture < 90 && inst.code.bit(59);
}

/// Where the operands of a texture's instruction stand, behind those that are registers of the result.
enum Place : std::size_t { predicate, second_result, result, first, second };

} // namespace

/// The object as a 64-bit register.
std::string Lifter::object_of(const Value& number) {
    const std::string object = wide_temporary();
    emit("cvt.u64.u32 " + object + ", " + in_register(number));
    return object;
}

/// From c[bank][4 * word], where two operands say so, or from a uniform register.
Value Lifter::bound_object(const Instruction& inst, std::size_t operand) {
    const Operand& place = inst.operands[operand];
    if (place.kind == Kind::uniform) {
        const Operand& other = inst.operands[operand + 1]; // a number before sm_100
        if (other.kind == Kind::uniform ? other.index != zero_uniform : other.value != 0)
            refuse_here("an object with an offset");
        return read_index(index_of(place));
    }
    return constant_word(unsigned(place.value), 4 * inst.operands[operand + 1].value);
}

/// The list of operands: `count` of which `inside` are the layer and coordinates.
std::vector<Value> Lifter::texture_operands(const Instruction& inst, std::size_t inside, std::size_t count) {
    const unsigned a = index_of(inst.operands[first]), b = index_of(inst.operands[second]);
    std::size_t behind_first = inside;
    if (inst.has("SCR")) {
        if (count > 4) refuse_here("more operands than registers");
        behind_first = count <= 2 ? 1 : 2;
    }
    std::vector<Value> list;
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_second = i >= behind_first;
        const unsigned base = is_second ? b : a;
        const auto from = unsigned(is_second ? i - behind_first : i);
        list.push_back(read_index(base == zero_register ? base : base + from));
    }
    return list;
}

/// Puts what the mask chooses into the registers: two, then those of the second result.
void Lifter::write_texels(const Instruction& inst, std::size_t mask_operand, const std::vector<std::string>& texels) {
    unsigned written = 0;
    for (unsigned i = 0; i < 4; ++i) {
        if ((inst.operands[mask_operand].value >> i & 1) == 0) continue;
        const unsigned base = index_of(inst.operands[written < 2 ? result : second_result]);
        if (base != zero_register) write_index(base + written % 2, value_of(texels[i]));
        ++written;
    }
}

/// Under the guard, or where `chosen` holds; elsewhere they are zeros then.
void Lifter::fetch_texels(const std::string& statement, const std::vector<std::string>& texels,
                          const std::string& chosen) {
    if (chosen.empty()) return emit_guarded(statement);
    for (const std::string& texel : texels) emit("mov.b32 " + texel + ", 0");
    if (writes_) text_ += "\t@" + chosen + " " + statement + ";\n";
}

/// Of an object of one dimension the fetch from two gives zeros, and the other way round.
void Lifter::add_texels_of_line(std::vector<std::string>& texels, const std::string& y,
                                const std::function<std::vector<std::string>(const std::string& chosen)>& fetch) {
    const std::string is_zero = predicate_temporary(), chosen = predicate_temporary();
    emit("setp.eq.b32 " + is_zero + ", " + y + ", 0");
    emit("and.pred " + chosen + ", " + is_zero + ", " + as_register(guard_condition()));
    const std::vector<std::string> others = fetch(chosen);
    for (unsigned i = 0; i < 4; ++i) {
        const std::string either = temporary();
        emit("or.b32 " + either + ", " + texels[i] + ", " + others[i]);
        texels[i] = either;
    }
}

/// TEX, TLD and TLD4.
void Lifter::texture(const Instruction& inst) {
    for (const char* word : {"AOFFI", "NDV", "DC", "LB", "MS", "PTP", "F16.RN", "F16.RZ"})
        if (inst.has(word)) refuse_here(word);
    const Shape* shape = shape_of(textures, inst);
    if (shape == nullptr || inst.operands[predicate].index != true_predicate) refuse_here();
    const bool is_gather = inst.form->mnemonic == "TLD4", is_whole = inst.form->mnemonic == "TLD";
    // LZ is level 0; so is the level that ptxas names where the source names none.
    constexpr std::uint32_t far_below_zero = 0xc2000000;
    bool has_level = inst.has("LL");
    const bool has_object = has_object_register(inst);
    // From sm_100 on the code names no level where the source names none.
    if (!is_gather && !has_level && !inst.has("LZ") && inst.architecture < 100) refuse_here();
    const std::size_t inside = shape->coordinates + (shape->has_layer ? 1 : 0);
    const std::vector<Value> list = texture_operands(inst, inside, inside + has_object + has_level);
    const std::string object = object_of(has_object ? list[inside] : bound_object(inst, second + 1));
    const std::size_t mask = inst.operand_count - 1u;
    std::vector<std::string> coordinates;
    for (std::size_t i = 0; i < inside; ++i) coordinates.push_back(in_register(list[i]));
    if (shape->coordinates == 3 && shape->name != "3D") {
        // The code divides by the largest, which PTX's cubes do by themselves.
        const std::size_t begin = inside - 3;
        unsigned divisor = 0;
        for (std::size_t i = begin; i < inside; ++i) {
            const auto [by, coordinate] = cube_coordinate(list[i]);
            if (by == 0 || (divisor != 0 && by != divisor)) refuse_here("a cube whose coordinates are not known");
            divisor = by;
            coordinates[i] = temporary();
            emit("mov.b32 " + coordinates[i] + ", " + coordinate);
        }
    }
    std::string level;
    if (has_level && !is_whole && list.back().constant == far_below_zero) has_level = false;
    if (has_level) level = ", " + in_register(list.back());
    const auto fetch = [&](const Shape& as, const std::vector<std::string>& at, const std::string& chosen) {
        std::vector<std::string> texels;
        for (unsigned i = 0; i < 4; ++i) texels.push_back(temporary());
        const std::string opcode = is_gather   ? std::string("tld4.") + "rgba"[inst.code.bits(87, 2)] + "."
                                   : has_level ? "tex.level."
                                               : "tex.";
        const std::string statement = opcode + as.ptx + ".v4.u32." + (is_whole ? "s32 " : "f32 ") + vector_of(texels) +
                                      ", [" + object + ", " + vector_of(at) + "]" + level;
        fetch_texels(statement, texels, chosen);
        return texels;
    };
    std::vector<std::string> texels = fetch(*shape, coordinates, {});
    if (shape->name == "2D" && !is_gather && !is_whole)
        add_texels_of_line(texels, coordinates[1],
                           [&](const std::string& chosen) { return fetch(textures[0], {coordinates[0]}, chosen); });
    write_texels(inst, mask, texels);
}

/// TXD: the object, the coordinates and the layer behind the first register; behind the second how each coordinate
/// changes along x and along y.
void Lifter::texture_gradients(const Instruction& inst) {
    for (const char* word : {"AOFFI", "LC", "F16.RN", "F16.RZ"})
        if (inst.has(word)) refuse_here(word);
    const Shape* shape = shape_of(textures, inst);
    if (shape == nullptr || shape->coordinates > 2 || inst.operands[predicate].index != true_predicate) refuse_here();
    unsigned at = index_of(inst.operands[first]);
    const auto next = [&](unsigned& index) {
        return in_register(read_index(index == zero_register ? index : index++));
    };
    const std::string object =
        object_of(has_object_register(inst) ? value_of(next(at)) : bound_object(inst, second + 1));
    std::vector<std::string> coordinates;
    for (unsigned i = 0; i < shape->coordinates; ++i) coordinates.push_back(next(at));
    if (shape->has_layer) coordinates.insert(coordinates.begin(), next(at));
    unsigned from = index_of(inst.operands[second]);
    std::vector<std::string> along_x, along_y;
    for (unsigned i = 0; i < shape->coordinates; ++i) {
        along_x.push_back(next(from));
        along_y.push_back(next(from));
    }
    const auto fetch = [&](const Shape& as, const std::string& chosen) {
        std::vector<std::string> texels, place = coordinates, x = along_x, y = along_y;
        place.resize(as.coordinates + (as.has_layer ? 1 : 0));
        x.resize(as.coordinates);
        y.resize(as.coordinates);
        for (unsigned i = 0; i < 4; ++i) texels.push_back(temporary());
        const std::string statement = std::string("tex.grad.") + as.ptx + ".v4.u32.f32 " + vector_of(texels) + ", [" +
                                      object + ", " + vector_of(place) + "], " + vector_of(x) + ", " + vector_of(y);
        fetch_texels(statement, texels, chosen);
        return texels;
    };
    std::vector<std::string> texels = fetch(*shape, {});
    if (shape->name == "2D")
        add_texels_of_line(texels, coordinates[1],
                           [&](const std::string& chosen) { return fetch(textures[0], chosen); });
    write_texels(inst, inst.operand_count - 1u, texels);
}

/// TXQ of the size at a level: what ptxas asks of is the base.
void Lifter::texture_query(const Instruction& inst) {
    if (!inst.has("TEX_HEADER_DIMENSION")) refuse_here();
    const unsigned a = index_of(inst.operands[2]);
    const auto at = [&](unsigned i) { return read_index(a == zero_register ? a : a + i); };
    const bool has_object = has_object_register(inst);
    const Value level = at(has_object ? 1 : 0);
    if (!level.constant || *level.constant != 0) refuse_here("of a level");
    const std::string object = object_of(has_object ? at(0) : bound_object(inst, 4));
    const std::int64_t mask = inst.operands[inst.operand_count - 1u].value;
    constexpr const char* dimensions[] = {"width", "height", "depth"};
    unsigned written = 0;
    for (unsigned i = 0; i < 4; ++i) {
        if ((mask >> i & 1) == 0) continue;
        if (i == 3) refuse_here("of the number of levels");
        const std::string size = temporary();
        emit_guarded(std::string("txq.") + dimensions[i] + ".b32 " + size + ", [" + object + "]");
        const unsigned base = index_of(inst.operands[written < 2 ? 1 : 0]);
        if (base != zero_register) write_index(base + written % 2, value_of(size));
        ++written;
    }
}

namespace {

const char* outside_of(const Instruction& inst) {
    return inst.has("IGN") ? ".zero" : inst.has("TRAP") ? ".trap" : ".clamp";
}

} // namespace

/// "[object, {coordinates}]": those in registers have the layer last, PTX has it first.
std::string Lifter::surface_place(const Instruction& inst, std::size_t address, std::size_t object,
                                  std::string& shape) {
    const Shape* found = shape_of(surfaces, inst);
    if (found == nullptr) refuse_here();
    shape = found->ptx;
    const unsigned base = inst.operands[address].index;
    std::vector<std::string> coordinates;
    const unsigned count = found->coordinates + (found->has_layer ? 1 : 0);
    for (unsigned i = 0; i < count; ++i)
        coordinates.push_back(in_register(read_index(base == zero_register ? base : base + i)));
    if (found->has_layer) {
        coordinates.insert(coordinates.begin(), coordinates.back());
        coordinates.pop_back();
    }
    const Operand& number = inst.operands[object];
    const Value value = number.kind == Kind::reg ? read_index(index_of(number)) : bound_object(inst, object);
    return "[" + object_of(value) + ", " + vector_of(coordinates) + "]";
}

void Lifter::surface_load(const Instruction& inst) {
    if (inst.operands[0].index != true_predicate) refuse_here();
    std::string shape;
    const std::string place = surface_place(inst, 2, 3, shape);
    const std::string head = "suld.b." + shape;
    const Operand& target = inst.operands[1];
    if (inst.has("S8") || inst.has("S16")) refuse_here();
    if (inst.has("U8") || inst.has("U16")) {
        const std::string half = "%h" + std::to_string(halves_++), whole = temporary();
        emit_guarded(head + (inst.has("U8") ? ".b8" : ".b16") + outside_of(inst) + " {" + half + "}, " + place);
        emit("cvt.u32.u16 " + whole + ", " + half);
        write(target, value_of(whole));
        return;
    }
    const unsigned count = inst.has("128") ? 4 : inst.has("64") ? 2 : 1;
    const std::vector<std::string> results = result_temporaries(count);
    emit_guarded(head +
                 (count == 4   ? ".v4"
                  : count == 2 ? ".v2"
                               : "") +
                 ".b32" + outside_of(inst) + " " + vector_of(results) + ", " + place);
    write_results(target, results);
}

void Lifter::surface_store(const Instruction& inst) {
    std::string shape;
    const std::string place = surface_place(inst, 0, 2, shape);
    const unsigned source = index_of(inst.operands[1]);
    const auto part = [&](unsigned i) {
        return in_register(read_index(source == zero_register ? source : source + i));
    };
    if (inst.has("S8") || inst.has("S16")) refuse_here();
    if (inst.has("U8") || inst.has("U16")) {
        emit_guarded("sust.b." + shape + (inst.has("U8") ? ".b8" : ".b16") + outside_of(inst) + " " + place + ", {" +
                     half_of(part(0)) + "}");
        return;
    }
    const bool is_formatted = inst.has("P");
    if (is_formatted && shape[0] == 'a') refuse_here("texels of layers");
    const unsigned count = is_formatted || inst.has("128") ? 4 : inst.has("64") ? 2 : 1;
    std::vector<std::string> elements;
    for (unsigned i = 0; i < count; ++i) elements.push_back(part(i));
    emit_guarded((is_formatted ? "sust.p." : "sust.b.") + shape +
                 (count == 4   ? ".v4"
                  : count == 2 ? ".v2"
                               : "") +
                 ".b32" + outside_of(inst) + " " + place + ", " + vector_of(elements));
}

void Lifter::surface_reduce(const Instruction& inst) {
    std::string shape;
    const std::string place = surface_place(inst, 0, 2, shape);
    const bool is_wide = inst.has("U64");
    if (inst.has("S64") || inst.has("F32.FTZ.RN") || shape[0] == 'a') refuse_here();
    const char* operation = inst.has("ADD")   ? "add"
                            : inst.has("MIN") ? "min"
                            : inst.has("MAX") ? "max"
                            : inst.has("AND") ? "and"
                            : inst.has("OR")  ? "or"
                                              : nullptr;
    if (operation == nullptr || (inst.has("IGN") == inst.has("TRAP"))) refuse_here();
    const bool is_bits = inst.has("AND") || inst.has("OR");
    const std::string type = is_wide ? ".u64" : is_bits ? ".b32" : inst.has("S32") ? ".s32" : ".u32";
    const std::string value =
        is_wide ? wide_text(pair_at(index_of(inst.operands[1]))) : in_register(read(inst.operands[1]));
    emit_guarded(std::string("sured.b.") + operation + "." + shape + type + outside_of(inst) + " " + place + ", " +
                 value);
}

} // namespace ptarmigan::sass
