// SPDX-License-Identifier: Apache-2.0
// Initialisers of .global and .const variables: numbers to bytes, symbols to relocations.
#include "frontend/bind/constant_bits.h"
#include "frontend/bind/module_binder.h"
#include "frontend/isa/directives.h"
#include "frontend/parse/cursor.h"

namespace ptarmigan::ptx {

namespace {

class InitializerBinder {
public:
    InitializerBinder(const VariableSyntax& syntax, const DeclaratorSyntax& declarator, const ModuleContext& context,
                      const NameLookup& find, Diagnostics& diagnostics, Variable& variable)
        : nodes_(syntax.initializers), first_(declarator.first_initializer), context_(context), find_(find),
          diagnostics_(diagnostics), variable_(variable), element_(byte_size(variable.type)) {}

    void bind() {
        if (first_ >= nodes_.size() || element_ == 0) return;
        const InitializerSyntax& root = nodes_[first_];
        if (variable_.unsized) infer_size(root);
        if (variable_.size > max_initialized_size ||
            (context_.initialized_bytes += variable_.size) > max_initialized_size)
            return fail(root, "the initialised variables are too large");
        variable_.init.assign(variable_.size, 0);
        level(first_, 0);
    }

private:
    static constexpr std::uint64_t max_initialized_size = std::uint64_t{1} << 29; ///< of a module

    void fail(const InitializerSyntax& node, std::string text) {
        diagnostics_.error(node.location, std::move(text));
        throw Recover{};
    }

    /// `name[] = {...}`: the outermost dimension is the number of elements written.
    void infer_size(const InitializerSyntax& root) {
        std::uint64_t inner = element_ * std::uint64_t{variable_.vector_size};
        for (std::size_t i = 1; i < variable_.dimensions.size(); ++i) inner *= variable_.dimensions[i];
        if (root.kind != InitializerSyntax::Kind::braces || root.children == 0 || inner == 0)
            fail(root, "an array needs a list of initial values");
        variable_.dimensions[0] = root.children;
        variable_.size = inner * root.children;
        variable_.unsized = false;
    }

    /// The list at `index`; `depth` counts dimensions entered. Values follow each other without a gap whatever the
    /// braces, as in ptxas' binaries: {{1}, {2}} in [2][2] is 1 2 0 0. C, which the manual (5.4.4) refers to, has 1 0 2
    /// 0.
    void level(std::size_t index, std::size_t depth) {
        const InitializerSyntax& node = nodes_[index];
        const std::size_t levels = variable_.dimensions.size() + (variable_.vector_size > 1 ? 1 : 0);
        if (node.kind != InitializerSyntax::Kind::braces) {
            if (depth < levels) fail(node, "a list of initial values is needed here");
            value(node, next_);
            next_ += element_;
            return;
        }
        if (depth >= levels) fail(node, "too many braces in this initialiser");
        const std::uint64_t count =
            depth < variable_.dimensions.size() ? variable_.dimensions[depth] : variable_.vector_size;
        if (node.children > count) fail(node, "too many initial values");
        std::size_t child = index + 1;
        for (std::uint32_t i = 0; i < node.children; ++i, child += nodes_[child].extent) level(child, depth + 1);
    }

    void store(std::uint64_t offset, std::uint64_t bits) {
        for (unsigned i = 0; i < element_ && offset + i < variable_.init.size(); ++i)
            variable_.init[offset + i] = static_cast<std::uint8_t>(i < 8 ? bits >> 8 * i : 0);
    }

    void value(const InitializerSyntax& node, std::uint64_t offset) {
        switch (node.kind) {
        case InitializerSyntax::Kind::braces: return fail(node, "too many braces in this initialiser");
        case InitializerSyntax::Kind::string: return fail(node, "strings are no initial values in PTX");
        case InitializerSyntax::Kind::symbol: return symbol(node, offset);
        case InitializerSyntax::Kind::constant: break;
        }
        std::string why;
        const bool untyped_real = type_class(variable_.type) == TypeClass::bits && !node.constant.is_integer();
        if (untyped_real) return store(offset, real_bits(node.constant));
        const auto bits = constant_bits(node.constant, variable_.type, why);
        if (!bits) return fail(node, why);
        store(offset, *bits);
    }

    /// A floating-point constant in a variable of type .b32 is its value as an f32; in others it is as many of its own
    /// bits as fit, the low ones (what ptxas 13.0 writes into the binary).
    std::uint64_t real_bits(const Constant& constant) const {
        std::string why;
        return variable_.type == ScalarType::b32 ? *constant_bits(constant, ScalarType::f32, why) : constant.bits;
    }

    void symbol(const InitializerSyntax& node, std::uint64_t offset) {
        const Symbol found = find_(node.name);
        if (found.kind == Symbol::Kind::none) return fail(node, "unknown symbol '" + std::string(node.name) + "'");
        Relocation relocation;
        relocation.offset = offset;
        relocation.size = static_cast<std::uint8_t>(node.masked ? 1 : element_);
        relocation.byte = node.mask_byte;
        relocation.generic = node.generic;
        relocation.is_function = found.kind == Symbol::Kind::function;
        relocation.symbol = found.index;
        relocation.addend = node.constant.as_signed();
        const auto gate = [&](std::string_view what) {
            const std::string broken = broken_directive(what, context_.module.version, context_.module.target);
            if (!broken.empty()) fail(node, broken);
        };
        if (node.generic) gate("generic()");
        if (node.masked) gate("mask()");
        if (!relocation.is_function) {
            const bool in_module = found.kind == Symbol::Kind::module_variable;
            const StateSpace space = in_module ? context_.module.variables[found.index].space : StateSpace::none;
            if (space != StateSpace::global && space != StateSpace::constant)
                fail(node, "only addresses in .global and .const are known before a launch");
        }
        if (!node.masked && variable_.type != ScalarType::u32 && variable_.type != ScalarType::u64)
            return fail(node, "the address of a symbol is for .u32 and .u64 variables");
        if (node.masked && variable_.type != ScalarType::u8)
            return fail(node, "parts of an address, as in 0xFF(symbol), are for .u8 variables");
        if (relocation.is_function && (node.generic || relocation.addend != 0))
            return fail(node, "the address of a function takes no generic() and no offset");
        variable_.relocations.push_back(relocation);
    }

    const std::vector<InitializerSyntax>& nodes_;
    std::size_t first_;
    const ModuleContext& context_;
    const NameLookup& find_;
    Diagnostics& diagnostics_;
    Variable& variable_;
    unsigned element_;
    std::uint64_t next_ = 0; ///< where the next value goes, in bytes
};

} // namespace

void bind_initializer(const VariableSyntax& syntax, const DeclaratorSyntax& declarator, const ModuleContext& context,
                      const NameLookup& find, Diagnostics& diagnostics, Variable& variable) {
    try {
        InitializerBinder(syntax, declarator, context, find, diagnostics, variable).bind();
    } catch (const Recover&) {
        variable.init.clear(); // reported; the module won't be used
    }
}

} // namespace ptarmigan::ptx
