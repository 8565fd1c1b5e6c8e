// SPDX-License-Identifier: Apache-2.0
#include "frontend/ptx/declaration_printer.h"

#include "frontend/isa/words.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

std::string hex(std::uint64_t value, unsigned digits) {
    std::string text(digits, '0');
    for (unsigned i = 0; i < digits; ++i) text[digits - 1 - i] = "0123456789ABCDEF"[value >> 4 * i & 15];
    return text;
}

std::string linkage_words(Linkage linkage) {
    constexpr std::string_view words[] = {"", ".visible ", ".extern ", ".weak ", ".common "};
    return std::string(words[static_cast<unsigned>(linkage)]);
}

/// The values of one variable, level by level of its dimensions.
class InitializerPrinter {
public:
    InitializerPrinter(const Module& module, const Variable& variable)
        : module_(module), variable_(variable), used_(variable.init.size()) {
        // What follows the last value is zero without being written.
        while (used_ != 0 && variable.init[used_ - 1] == 0) --used_;
        if (!variable.relocations.empty()) used_ = std::max(used_, variable.relocations.back().offset + 1);
    }

    std::string level(std::size_t depth) {
        const std::size_t levels = variable_.dimensions.size() + (variable_.vector_size > 1 ? 1 : 0);
        if (depth == levels) return element();
        const bool is_vector = depth == variable_.dimensions.size(); // ptxas wants all its elements
        if (used_ == 0 && !is_vector) return "{}";
        const std::uint64_t count =
            depth < variable_.dimensions.size() ? variable_.dimensions[depth] : variable_.vector_size;
        const std::uint64_t first = offset_, size = level_size(depth);
        std::string text = "{";
        for (std::uint64_t i = 0; i < count && (i == 0 || is_vector || offset_ < used_); ++i) {
            if (i != 0) text += ", ";
            text += level(depth + 1);
        }
        offset_ = first + size;
        return text + "}";
    }

private:
    /// Bytes of a list at `depth`.
    std::uint64_t level_size(std::size_t depth) const {
        std::uint64_t size = byte_size(variable_.type) * std::uint64_t{variable_.vector_size};
        for (std::size_t i = depth; i < variable_.dimensions.size(); ++i) size *= variable_.dimensions[i];
        return size;
    }

    std::string element() {
        const unsigned size = byte_size(variable_.type);
        const std::uint64_t at = offset_;
        offset_ += size;
        const std::vector<Relocation>& all = variable_.relocations; // in the order of their offsets
        while (next_ < all.size() && all[next_].offset < at) ++next_;
        if (next_ < all.size() && all[next_].offset == at) return relocation(all[next_]);
        std::uint64_t bits = 0;
        for (unsigned i = 0; i < size && i < 8; ++i) bits |= std::uint64_t{variable_.init[at + i]} << 8 * i;
        return constant_text(bits, variable_.type);
    }

    std::string relocation(const Relocation& r) const {
        std::string symbol = r.is_function ? module_.functions[r.symbol].name : module_.variables[r.symbol].name;
        if (r.generic) symbol = "generic(" + symbol + ")";
        symbol += offset_text(static_cast<std::uint64_t>(r.addend));
        if (r.size == 1) return "0x" + hex(std::uint64_t{0xff} << 8 * r.byte, 16) + "(" + symbol + ")";
        return symbol;
    }

    const Module& module_;
    const Variable& variable_;
    std::uint64_t offset_ = 0;
    std::size_t next_ = 0;
    std::uint64_t used_; ///< bytes up to the last one that is not zero
};

std::string triple(const char* name, const std::array<std::uint32_t, 3>& values) {
    if (values[0] == 0) return "";
    std::string text = std::string(" ") + name + " ";
    for (std::size_t i = 0; i < 3; ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
    return text;
}

std::string limits_text(const EntryLimits& l) {
    auto one = [](const char* name, std::uint32_t value) {
        return value == 0 ? "" : std::string(" ") + name + " " + std::to_string(value);
    };
    std::string text = triple(".maxntid", l.max_ntid) + triple(".reqntid", l.required_ntid) +
                       triple(".reqnctapercluster", l.required_cluster) + one(".minnctapersm", l.min_ctas_per_sm) +
                       one(".maxnreg", l.max_registers) + one(".maxclusterrank", l.max_cluster_rank);
    if (l.explicit_cluster) text += " .explicitcluster";
    if (l.blocks_are_clusters) text += " .blocksareclusters";
    return text;
}

} // namespace

std::string constant_text(std::uint64_t bits, ScalarType type) {
    if (type == ScalarType::f32) return "0f" + hex(bits, 8);
    if (type == ScalarType::f64) return "0d" + hex(bits, 16);
    const unsigned size = bit_size(type);
    if (is_signed(type) && size <= 64 && size > 0) {
        const auto value = static_cast<std::int64_t>(bits << (64 - size)) >> (64 - size);
        if (value != INT64_MIN) return std::to_string(value);
        return "0x8000000000000000";
    }
    return std::to_string(bits);
}

std::string offset_text(std::uint64_t offset) {
    if (offset == 0) return "";
    const auto value = static_cast<std::int64_t>(offset);
    return "+" + std::to_string(value); // "+-4" where negative: PTX has no other way
}

std::string module_header(const Module& module) {
    std::string text = ".version " + std::to_string(module.version.major) + "." + std::to_string(module.version.minor) +
                       "\n.target sm_" + std::to_string(module.target.sm);
    if (module.target.suffix != 0) text += module.target.suffix;
    if (module.target.texmode_independent) text += ", texmode_independent";
    if (module.target.debug) text += ", debug";
    return text + "\n.address_size " + std::to_string(module.address_size) + "\n";
}

std::string variable_declaration(const Variable& v, const std::string& name) {
    std::string text = linkage_words(v.linkage) + "." + std::string(spelling(v.space));
    if (v.managed) text += " .attribute(.managed)";
    if (v.space == StateSpace::param && v.is_pointer) {
        text += " ." + std::string(spelling(v.type)) + " .ptr";
        if (v.pointee_space != StateSpace::none) text += " ." + std::string(spelling(v.pointee_space));
        return text + " .align " + std::to_string(v.pointee_alignment) + " " + name;
    }
    if (v.space != StateSpace::reg && type_class(v.type) != TypeClass::opaque &&
        v.alignment != byte_size(v.type) * v.vector_size)
        text += " .align " + std::to_string(v.alignment);
    if (v.vector_size > 1) text += " .v" + std::to_string(v.vector_size);
    text += " ." + std::string(spelling(v.type)) + " " + name;
    for (std::size_t i = 0; i < v.dimensions.size(); ++i)
        text += i == 0 && v.unsized ? "[]" : "[" + std::to_string(v.dimensions[i]) + "]";
    return text;
}

std::string module_variable_declaration(Version version, const Variable& v) {
    // In PTX 1.0 to 1.4 textures are no type yet, but a state space.
    if (v.type == ScalarType::texref && version < Version{1, 5})
        return linkage_words(v.linkage) + ".tex .u32 " + v.name;
    return variable_declaration(v, v.name);
}

std::string variable_initializer(const Module& module, const Variable& variable) {
    if (variable.init.empty()) return "";
    return " = " + InitializerPrinter(module, variable).level(0);
}

std::string parameter_list(const std::vector<Variable>& parameters) {
    std::string text = "(";
    for (const Variable& v : parameters) text += (text.size() > 1 ? ", " : "") + variable_declaration(v, v.name);
    return text + ")";
}

std::string function_head(const Function& f, bool with_limits) {
    std::string text = linkage_words(f.linkage) + (f.is_entry ? ".entry " : ".func ");
    if (!f.returns.empty()) text += parameter_list(f.returns) + " ";
    text += f.name;
    if (!f.parameters_in_body) text += parameter_list(f.parameters);
    if (f.noreturn) text += " .noreturn";
    return with_limits ? text + limits_text(f.limits) : text;
}

} // namespace ptarmigan::ptx
