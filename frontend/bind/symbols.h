// SPDX-License-Identifier: Apache-2.0
// Names and what they stand for. Keys are views into the source text, which outlives the tables.
#pragma once

#include "frontend/isa/words.h"
#include "frontend/ptx/module.h"
#include "frontend/source/text_hash.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptarmigan::ptx {

struct Symbol {
    enum class Kind : std::uint8_t {
        none,
        reg,             ///< index: RegisterId of the (first) register, see vector_size
        module_variable, ///< index: VariableId
        body_variable,   ///< index: VariableId
        function,        ///< index: FunctionId
        label,           ///< index: LabelId
        branch_targets,  ///< index into Body::branch_targets
        call_targets,    ///< index into Body::call_targets
        prototype,       ///< index into Body::prototypes
    };
    Kind kind = Kind::none;
    std::uint8_t vector_size = 1; ///< of a register: 2 or 4 for .v2 .v4
    std::uint32_t index = no_id;
    std::uint32_t count = 0;            ///< of a register range
    ScalarType type = ScalarType::none; ///< of the registers of a range; none of others
};

using ModuleNames = std::unordered_map<std::string_view, Symbol, TextHash>;

/// A name as letters and the number that it may end with: "%rd12" is "%rd" and 12.
struct NumberedName {
    explicit NumberedName(std::string_view name);
    /// The last eight letters, one in each byte, of those in `key` and then `letters`.
    static std::uint64_t key_of(std::string_view letters, std::uint64_t key = 0);

    std::string_view name, prefix;
    std::uint64_t prefix_key = 0; ///< key_of(prefix)
    std::uint64_t number = 0;
    bool has_number = false;
};

/// The names of one `{ }` of a body.
class Scope {
public:
    /// False if the name is taken in this scope.
    bool declare(std::string_view name, const Symbol& symbol) { return names_.emplace(name, symbol).second; }
    /// Whether one of the registers or variables here has a name that `prefix<count>` would declare too. Not looked for
    /// among thousands.
    bool declares_number_of(std::string_view prefix, std::uint32_t count) const;
    /// `prefix<count>`.
    bool declare_range(std::string_view prefix, const Symbol& symbol);
    /// Kind::none if the name is not declared here. A range gives the symbol of the one variable;
    /// of registers, which are made when they are first used, the index is the one noted in `*id`,
    /// no_id at first.
    Symbol find(const NumberedName& name, RegisterId*& id);
    /// What find() gives for a register of a range that has been made: its id, and its range's symbol. no_id if the
    /// name is another; find() tells then.
    RegisterId made_register(const NumberedName& name, const Symbol*& range_symbol) const;
    bool has(std::string_view name) const;
    Symbol find_label(std::string_view name) const;

    /// Offers the names declared here, but for those of ranges; of one kind if it isn't none.
    void offer_names(NearestSpelling& nearest, Symbol::Kind kind = Symbol::Kind::none) const;
    /// For a name that is no register: what a range here has to do with it ("; %r<8> ends with %r7", or the register
    /// with a '%' before it); empty if nothing.
    std::string range_meant_by(std::string_view name) const;

    /// A use of a label that may be declared further down.
    struct LabelUse {
        std::string_view name;
        SourceLocation location;
        bool in_target_list; ///< branch_targets[where][element], else operands[element] of
                             ///< instruction `where`
        std::uint32_t where, element;
    };
    std::vector<LabelUse> label_uses;

private:
    struct Range {
        std::string_view prefix;
        Symbol symbol;
        std::vector<RegisterId> ids;                       ///< of numbers below a limit
        std::unordered_map<std::uint32_t, RegisterId> far; ///< of the others
    };
    static RegisterId& id_of(Range& range, std::uint32_t number);
    /// The range that `name` is a number of, or null; then `number` says which.
    const Range* find_range(const NumberedName& name, std::uint32_t& number) const;
    const Range* find_plain_range(const NumberedName& name, std::uint32_t& number) const;
    const Range* find_odd_range(std::string_view name, std::uint32_t& number) const;

    std::unordered_map<std::string_view, Symbol, TextHash> names_;
    std::vector<Range> ranges_;              ///< a handful: %p, %r, %f, ...
    std::vector<std::uint64_t> prefix_keys_; ///< of ranges_
    bool is_plain_ = true;                   ///< ranges are few and no prefix ends in a digit
    std::unordered_map<std::string_view, std::uint32_t, TextHash> range_of_; ///< when there are more
};

inline RegisterId Scope::made_register(const NumberedName& name, const Symbol*& range_symbol) const {
    if (!is_plain_ || !name.has_number) return no_id;
    for (std::size_t i = 0; i < prefix_keys_.size(); ++i) {
        if (prefix_keys_[i] != name.prefix_key) continue;
        const Range& range = ranges_[i];
        const bool same =
            range.prefix.size() == name.prefix.size() && (name.prefix.size() <= 8 || range.prefix == name.prefix);
        if (!same) continue;
        range_symbol = &range.symbol;
        return name.number < range.ids.size() ? range.ids[name.number] : no_id;
    }
    return no_id;
}

} // namespace ptarmigan::ptx
