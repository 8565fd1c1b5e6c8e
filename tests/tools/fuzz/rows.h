// SPDX-License-Identifier: Apache-2.0
// Which part of the generator makes a row of the instruction table, from what the row says; and which rows none makes, with the reason.
#pragma once

#include "frontend/isa/instruction_form.h"
#include "frontend/ptx/module.h"
#include "tests/recordings/random.h"

#include <cstdint>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace fuzz {

enum class Use : std::uint8_t {
    value,      ///< pure: operands in registers and constants
    shaped,     ///< likewise, and the result's shape follows a rule of its own
    carry_first, ///< writes the carry and reads none
    carry_next, ///< reads it
    memory,     ///< one load or store
    atomic,
    collective, ///< between the lanes of a warp
    barrier,    ///< between the warps of a CTA
    cluster,    ///< barriers of the cluster
    fence,
    hint,       ///< changes no value: prefetches, events
    policy,     ///< makes a cache policy
    address,    ///< from address to address, and questions about one
    copy,       ///< cp.async and its groups
    stack,
    control,    ///< branches, calls, ends
    none,
};

struct RowUse {
    Use use = Use::none;
    const char* reason = ""; ///< why none
};
RowUse use_of(const ptarmigan::ptx::FormInfo& info, ptarmigan::ptx::Version version, ptarmigan::ptx::Target target);

/// Rows by use. What a seed draws changes as little as possible when rows are added or renamed: a row is chosen by its name.
class RowChooser {
public:
    /// Only rows whose name matches `filter`, where that leaves any for the use.
    RowChooser(ptarmigan::ptx::Version version, ptarmigan::ptx::Target target, const std::string& filter);
    ptarmigan::ptx::FormId choose(Use use, recordings::Random& random) const;
    bool has(Use use) const { return rows_.contains(use); }

private:
    struct Row {
        ptarmigan::ptx::FormId id;
        std::uint64_t hash, chapter_hash;
    };
    std::map<Use, std::vector<Row>> rows_;
};

} // namespace fuzz
