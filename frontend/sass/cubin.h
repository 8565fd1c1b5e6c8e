// SPDX-License-Identifier: Apache-2.0
// Reader of cubins: ELF files of machine code. It finds kernels, their parameters, constants, variables and
// relocations. Every offset is checked; a damaged file is an error text, never a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptarmigan::sass {

struct CubinRelocation {
    std::uint64_t offset = 0; ///< in the section that it changes
    std::uint32_t type = 0;
    std::uint32_t symbol = 0;
    std::int64_t addend = 0;
};

struct CubinSection {
    std::string_view name;
    std::span<const std::uint8_t> bytes; ///< empty for sections without contents
    std::uint64_t size = 0, alignment = 1;
    std::uint32_t type = 0, info = 0;
    std::vector<CubinRelocation> relocations;
};

/// The values of CubinSymbol::type that are asked for (STT_*).
inline constexpr std::uint8_t function_symbol = 2, section_symbol = 3;

struct CubinSymbol {
    std::string_view name;
    std::uint64_t value = 0, size = 0;
    std::uint8_t type = 0;    ///< STT_*: 1 object, 2 function, 3 section
    std::uint8_t binding = 0; ///< STB_*: 0 local, 1 global, 2 weak
    std::uint8_t other = 0;
    std::uint16_t section = 0;
};

struct KernelParameter {
    std::uint32_t ordinal = 0, offset = 0, size = 0;
};

/// What the file says of instructions of a section, by byte offsets in it.
struct CodeFacts {
    /// Of each indirect branch: where it may go.
    struct BranchTargets {
        std::uint32_t branch = 0;
        std::vector<std::uint32_t> targets;
    };
    std::vector<BranchTargets> branch_targets;
    /// Instructions, ascending, that lanes of a warp do together for the compiler's own ends: the source knows nothing
    /// of them.
    std::vector<std::uint32_t> internal_collectives;
    /// Those of the source by byte offset, ascending, and which lanes they name.
    struct Collective {
        std::uint32_t offset = 0;
        std::optional<std::uint8_t> mask; ///< a register; none: not known
        bool is_uniform = false;          ///< of the uniform ones
        bool is_of_all = false;           ///< all lanes of the warp
    };
    std::vector<Collective> collectives;
};

/// An entry, by what the file says of it.
struct CubinKernel {
    std::string_view name;
    std::size_t text = 0;                          ///< index of its section
    std::optional<std::size_t> parameters_section; ///< .nv.constant0.NAME
    std::vector<KernelParameter> parameters;       ///< by ordinal
    /// The last of them are the kernel's own: no launch gives them, host code of the file fills them (.nv.host).
    std::uint32_t hidden_parameters = 0;
    std::uint32_t parameter_base = 0; ///< where they begin in bank 0
    std::uint32_t registers = 0, shared_size = 0, shared_alignment = 1, stack_size = 0;
    bool has_unknown_stack = false; ///< stack_size, a multiple of 16, is its least
    std::uint32_t max_threads = 0;  ///< 0: not given
    std::uint32_t required_threads[3] = {};
    bool is_tile = false;      ///< CUDA Tile's: launches name no threads, but `required_threads` run
    bool has_clusters = false; ///< it is launched in clusters only
    bool blocks_are_clusters =
        false; ///< launches name clusters of `cluster` blocks of `required_threads` (.blocksareclusters)
    std::uint32_t cluster[3] = {};  ///< of these dimensions, unless 0
    bool names_workarounds = false; ///< as ptxas does for sm_90's asynchronous instructions
    CodeFacts facts;
};

/// A section of code that is no entry's: functions that kernels call (-G, -rdc).
struct CubinFunctions {
    std::size_t text = 0; ///< index of the section
    CodeFacts facts;
};

struct Cubin {
    unsigned architecture = 0; ///< 80 for sm_80
    std::vector<CubinSection> sections;
    std::vector<CubinSymbol> symbols;
    std::vector<CubinKernel> kernels;
    std::vector<CubinFunctions> functions;
    std::unordered_map<std::string_view, std::size_t> sections_by_name; ///< the first of each name

    const CubinSection* find_section(std::string_view name) const;
};

/// Reads a cubin, whose bytes must stay. False with what is wrong in `error`.
bool read_cubin(std::span<const std::uint8_t> image, Cubin& cubin, std::string& error);

/// Bytes that an ELF file takes by its own headers, at most `limit`; 0 if it is none, or claims what `can_be_read` (a
/// beginning and a size) denies, which is asked before anything behind the first header is read.
std::size_t elf_extent(const void* image, std::size_t limit, bool (*can_be_read)(const void*, std::size_t));

} // namespace ptarmigan::sass
