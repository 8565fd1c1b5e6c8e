// SPDX-License-Identifier: Apache-2.0
// Compiles kernels before anybody launches them, into the process's kernel cache.
#pragma once

#include "runtime/module/cache_key.h"
#include "tools/ptarmigan/program_texts.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::tool {

using BlockExtents = std::array<std::uint32_t, 3>;

/// Block shapes that files of the cache, of whatever build of Ptarmigan, were made for: of earlier runs and versions.
class KnownShapes {
public:
    /// Of all folders of the cache.
    static KnownShapes from_cache();
    /// `text`: ModuleSource::text_hash().
    std::vector<BlockExtents> of(const runtime::TextHash& text, const std::string& kernel) const;

private:
    std::map<std::string, std::vector<BlockExtents>> shapes_; ///< by text's hash and kernel
};

struct AheadOptions {
    std::function<bool(const std::string&)> wanted; ///< kernels by name
    std::vector<BlockExtents> blocks;               ///< for kernels that don't require a shape; empty: guessed
    unsigned jobs = 1;
};

struct AheadCounts {
    struct Fault {
        std::size_t count = 0;
        std::string first; ///< a kernel or file that has it
    };
    std::size_t texts = 0, cubins = 0;     ///< loaded; cubins: those with kernels
    std::size_t kernels = 0, variants = 0; ///< that are ready now; a variant: a kernel for a block shape
    std::size_t guessed = 0;               ///< variants for which nothing names the block shape
    std::map<std::string, Fault> faults;   ///< by what is wrong
};

/// Throws nothing for what is wrong with a text or kernel.
AheadCounts compile_ahead(const ProgramTexts& texts, const AheadOptions& options);

} // namespace ptarmigan::tool
