// SPDX-License-Identifier: Apache-2.0
#include "frontend/sass/cubin.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <elf.h>
#include <unordered_map>

namespace ptarmigan::sass {
namespace {

constexpr std::uint16_t cuda_machine = 190;
constexpr std::uint8_t entry_flag = 0x10; ///< of a symbol's st_other

template <class T> bool load(std::span<const std::uint8_t> bytes, std::uint64_t offset, T& value) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return true;
}

std::string_view text_at(std::span<const std::uint8_t> strings, std::uint64_t offset) {
    if (offset >= strings.size()) return {};
    const auto* start = reinterpret_cast<const char*>(strings.data()) + offset;
    return {start, strnlen(start, strings.size() - offset)};
}

/// Attributes of .nv.info, named as the disassembler names them (EIATTR_*).
enum Attribute : std::uint8_t {
    max_threads = 0x05,
    param_cbank = 0x0a,
    reqntid = 0x10,
    param_size = 0x19, ///< of all in the bank (CBANK_PARAM_SIZE)
    frame_size = 0x11,
    min_stack_size = 0x12,
    kparam_info = 0x17,
    kparam_info_v2 = 0x45, ///< with a word for the size
    coop_group_instr_offsets = 0x28,
    coop_group_mask_regids = 0x29,
    regcount = 0x2f,
    int_warp_wide_instr_offsets = 0x31,
    indirect_branch_targets = 0x34,
    sw_war = 0x36,
    cta_per_cluster = 0x3d,
    explicit_cluster = 0x3e,
    blocks_as_clusters = 0x5b,
    language = 0x66, ///< PTX's .language: 7 is CUDA Tile
};

constexpr std::uint32_t tile_language = 7;

class Reader {
public:
    Reader(std::span<const std::uint8_t> image, Cubin& cubin) : image_(image), cubin_(cubin) {}

    std::string read() {
        Elf64_Ehdr header;
        if (!load(image_, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "no ELF file";
        if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != cuda_machine)
            return "an ELF file, but not of a GPU's machine code";
        // Since version 8 of its ABI the architecture has moved.
        cubin_.architecture = header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
        if (header.e_shentsize != sizeof(Elf64_Shdr)) return "damaged: section headers of a size that is unknown";
        std::vector<Elf64_Shdr> headers(header.e_shnum);
        for (std::size_t i = 0; i < headers.size(); ++i)
            if (header.e_shoff > image_.size() || !load(image_, header.e_shoff + i * sizeof(Elf64_Shdr), headers[i]))
                return "damaged: section headers outside of the file";
        cubin_.sections.resize(headers.size());
        for (std::size_t i = 0; i < headers.size(); ++i) {
            CubinSection& section = cubin_.sections[i];
            section.type = headers[i].sh_type;
            section.size = headers[i].sh_size;
            section.info = headers[i].sh_info;
            section.alignment = std::clamp<std::uint64_t>(headers[i].sh_addralign, 1, 4096);
            if (!std::has_single_bit(section.alignment))
                return "damaged: a section aligned to " + std::to_string(section.alignment) + " bytes";
            if (section.size > size_limit) return "damaged: a section of " + std::to_string(section.size) + " bytes";
            if (section.type == SHT_NOBITS || section.type == SHT_NULL) continue;
            if (headers[i].sh_offset > image_.size() || image_.size() - headers[i].sh_offset < section.size)
                return "damaged: a section outside of the file";
            section.bytes = image_.subspan(headers[i].sh_offset, section.size);
        }
        if (header.e_shstrndx >= headers.size()) return "damaged: no section names";
        for (std::size_t i = 0; i < headers.size(); ++i)
            cubin_.sections[i].name = text_at(cubin_.sections[header.e_shstrndx].bytes, headers[i].sh_name);
        for (std::size_t i = 0; i < headers.size(); ++i) cubin_.sections_by_name.emplace(cubin_.sections[i].name, i);
        for (std::size_t i = 0; i < headers.size(); ++i)
            if (headers[i].sh_type == SHT_SYMTAB && headers[i].sh_link < headers.size())
                read_symbols(cubin_.sections[i].bytes, cubin_.sections[headers[i].sh_link].bytes);
        for (std::size_t i = 0; i < headers.size(); ++i)
            if (headers[i].sh_type == SHT_REL || headers[i].sh_type == SHT_RELA)
                if (const std::string error = read_relocations(headers[i], cubin_.sections[i].bytes); !error.empty())
                    return error;
        return read_kernels();
    }

private:
    static constexpr std::uint64_t size_limit = std::uint64_t(1) << 31;

    void read_symbols(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> strings) {
        Elf64_Sym symbol;
        for (std::uint64_t at = 0; load(bytes, at, symbol); at += sizeof symbol)
            cubin_.symbols.push_back({text_at(strings, symbol.st_name), symbol.st_value, symbol.st_size,
                                      std::uint8_t(ELF64_ST_TYPE(symbol.st_info)),
                                      std::uint8_t(ELF64_ST_BIND(symbol.st_info)), symbol.st_other, symbol.st_shndx});
    }

    std::string read_relocations(const Elf64_Shdr& header, std::span<const std::uint8_t> bytes) {
        if (header.sh_info >= cubin_.sections.size()) return "damaged: relocations of no section";
        CubinSection& target = cubin_.sections[header.sh_info];
        const bool has_addends = header.sh_type == SHT_RELA;
        const std::size_t step = has_addends ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
        for (std::uint64_t at = 0; at + step <= bytes.size(); at += step) {
            Elf64_Rela entry{};
            std::memcpy(&entry, bytes.data() + at, step);
            const auto symbol = std::uint32_t(ELF64_R_SYM(entry.r_info));
            if (symbol >= cubin_.symbols.size()) return "damaged: a relocation by no symbol";
            target.relocations.push_back(
                {entry.r_offset, std::uint32_t(ELF64_R_TYPE(entry.r_info)), symbol, has_addends ? entry.r_addend : 0});
        }
        return {};
    }

    /// Calls `visit(attribute, value, bytes)` for each record: 16-bit values are in `value`.
    template <class Visit> static bool visit_info(std::span<const std::uint8_t> bytes, const Visit& visit) {
        for (std::size_t at = 0; at + 4 <= bytes.size();) {
            const std::uint8_t format = bytes[at], attribute = bytes[at + 1];
            const auto value = std::uint16_t(bytes[at + 2] | bytes[at + 3] << 8);
            at += 4;
            std::span<const std::uint8_t> payload;
            if (format == 4) {
                if (bytes.size() - at < value) return false;
                payload = bytes.subspan(at, value);
                at += value;
            } else if (format == 0 || format > 4)
                return false;
            visit(attribute, value, payload);
        }
        return true;
    }

    std::string read_kernels() {
        constexpr std::string_view prefix = ".text.";
        std::unordered_map<std::uint32_t, std::size_t> by_symbol;
        for (std::size_t i = 0; i < cubin_.symbols.size(); ++i) {
            const CubinSymbol& symbol = cubin_.symbols[i];
            if (symbol.type != STT_FUNC || (symbol.other & entry_flag) == 0 || symbol.section >= cubin_.sections.size())
                continue;
            const CubinSection& text = cubin_.sections[symbol.section];
            if (text.name.substr(0, prefix.size()) != prefix) continue;
            CubinKernel kernel;
            kernel.name = symbol.name;
            kernel.text = symbol.section;
            kernel.registers = text.info >> 24;
            if (const std::string error = read_kernel(kernel); !error.empty())
                return std::string(kernel.name) + ": " + error;
            by_symbol.emplace(std::uint32_t(i), cubin_.kernels.size());
            cubin_.kernels.push_back(std::move(kernel));
        }
        std::vector<bool> is_entry(cubin_.sections.size());
        for (const CubinKernel& kernel : cubin_.kernels) is_entry[kernel.text] = true;
        for (std::size_t i = 0; i < cubin_.sections.size(); ++i) {
            const CubinSection& text = cubin_.sections[i];
            if (is_entry[i] || text.bytes.empty() || text.name.substr(0, prefix.size()) != prefix) continue;
            CubinFunctions& functions = cubin_.functions.emplace_back();
            functions.text = i;
            const std::string name(text.name.substr(prefix.size()));
            if (const CubinSection* info = cubin_.find_section(".nv.info." + name))
                if (!read_facts(info->bytes, functions.facts)) return name + ": damaged: .nv.info";
        }
        if (const CubinSection* info = cubin_.find_section(".nv.info")) {
            const bool sound = visit_info(info->bytes, [&](std::uint8_t attribute, std::uint16_t, auto payload) {
                std::uint32_t symbol = 0, value = 0;
                if (!load(payload, 0, symbol) || !load(payload, 4, value)) return;
                const auto found = by_symbol.find(symbol);
                if (found == by_symbol.end()) return;
                CubinKernel& kernel = cubin_.kernels[found->second];
                if (attribute == regcount) kernel.registers = std::min(value, 255u); // older files: in the section, too
                constexpr std::uint32_t unknown_size = 0xffffffff; // recursion, calls through pointers
                if ((attribute == frame_size || attribute == min_stack_size) && value == unknown_size)
                    kernel.has_unknown_stack = true;
                else if (attribute == frame_size || attribute == min_stack_size)
                    kernel.stack_size = std::max(kernel.stack_size, value);
            });
            if (!sound) return "damaged: .nv.info";
        }
        // R1 begins at a multiple of 16, however many bytes the frames take together: code counts on it.
        constexpr std::uint32_t alignment = 16;
        for (CubinKernel& kernel : cubin_.kernels)
            kernel.stack_size = (std::min(kernel.stack_size, 0u - alignment) + alignment - 1) / alignment * alignment;
        return {};
    }

    std::string read_kernel(CubinKernel& kernel) {
        const std::string name(kernel.name);
        if (const CubinSection* shared = cubin_.find_section(".nv.shared." + name)) {
            // On sm_90 the system's first kilobyte is counted.
            const std::uint64_t reserved = cubin_.architecture >= 90 ? 0x400 : 0;
            kernel.shared_size = std::uint32_t(shared->size - std::min(shared->size, reserved));
            kernel.shared_alignment = std::uint32_t(shared->alignment);
        }
        if (const CubinSection* constants = cubin_.find_section(".nv.constant0." + name))
            kernel.parameters_section = std::size_t(constants - cubin_.sections.data());
        kernel.parameter_base = cubin_.architecture >= 100  ? 0x380
                                : cubin_.architecture >= 90 ? 0x210
                                                            : 0x160; // said only where there are some
        const CubinSection* info = cubin_.find_section(".nv.info." + name);
        if (info == nullptr) return "no .nv.info";
        std::uint32_t size_in_bank = 0;
        bool sound = visit_info(info->bytes, [&](std::uint8_t attribute, std::uint16_t value, auto payload) {
            std::uint32_t word[3] = {};
            for (unsigned i = 0; i < 3; ++i) static_cast<void>(load(payload, 4 * i, word[i]));
            switch (attribute) {
            case kparam_info: kernel.parameters.push_back({word[1] & 0xffff, word[1] >> 16, word[2] >> 18}); break;
            case kparam_info_v2: // above the size: what a pointer points to
                kernel.parameters.push_back({word[1] & 0xffff, word[1] >> 16, word[2] & 0xffff});
                break;
            case param_size: size_in_bank = value; break;
            case language: kernel.is_tile = word[0] == tile_language; break;
            case param_cbank: kernel.parameter_base = word[1] & 0xffff; break;
            case max_threads:
                kernel.max_threads = std::max(word[0], 1u) * std::max(word[1], 1u) * std::max(word[2], 1u);
                break;
            case sw_war: kernel.names_workarounds = true; break;
            case explicit_cluster: kernel.has_clusters = true; break;
            case blocks_as_clusters: kernel.blocks_are_clusters = true; break;
            case cta_per_cluster:
                kernel.has_clusters = true;
                std::copy_n(word, 3, kernel.cluster);
                break;
            case reqntid: std::copy_n(word, 3, kernel.required_threads); break;
            default: break;
            }
        });
        if (kernel.has_clusters && cubin_.architecture < 90) sound = false;
        if (kernel.blocks_are_clusters && (kernel.cluster[0] == 0 || kernel.required_threads[0] == 0)) sound = false;
        if (kernel.cluster[0] != 0 && (kernel.cluster[1] == 0 || kernel.cluster[2] == 0)) sound = false;
        sound = read_facts(info->bytes, kernel.facts) && sound;
        std::sort(kernel.parameters.begin(), kernel.parameters.end(),
                  [](const KernelParameter& a, const KernelParameter& b) { return a.ordinal < b.ordinal; });
        std::uint32_t end = 0;
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            const KernelParameter& parameter = kernel.parameters[i];
            if (parameter.ordinal != i || parameter.offset < end || parameter.size == 0) sound = false;
            end = parameter.offset + parameter.size;
        }
        if (!sound || end > 65536) return "damaged: .nv.info";
        return kernel.is_tile && size_in_bank > end ? find_hidden_parameters(kernel, end, size_in_bank) : std::string();
    }

    /// Tensor maps behind the parameters that are listed, the only hidden parameters that are known.
    static std::string find_hidden_parameters(CubinKernel& kernel, std::uint32_t end, std::uint32_t size) {
        constexpr std::uint32_t map_size = 128, map_alignment = 64;
        std::uint32_t at = (kernel.parameter_base + end + map_alignment - 1) / map_alignment * map_alignment;
        at -= kernel.parameter_base;
        for (; at + map_size <= size; at += map_size) {
            kernel.parameters.push_back({std::uint32_t(kernel.parameters.size()), at, map_size});
            ++kernel.hidden_parameters;
        }
        return at == size ? std::string() : "hidden parameters that are no tensor maps";
    }

    static bool read_facts(std::span<const std::uint8_t> bytes, CodeFacts& facts) {
        std::vector<std::uint32_t> offsets, masks; // of what lanes of a warp do together
        const bool sound = visit_info(bytes, [&](std::uint8_t attribute, std::uint16_t, auto payload) {
            switch (attribute) {
            case coop_group_instr_offsets: read_words(payload, offsets); break;
            case coop_group_mask_regids: read_words(payload, masks); break;
            case int_warp_wide_instr_offsets: read_words(payload, facts.internal_collectives); break;
            case indirect_branch_targets: read_branch_targets(payload, facts); break;
            default: break;
            }
        });
        std::sort(facts.internal_collectives.begin(), facts.internal_collectives.end());
        for (std::size_t i = 0; i < offsets.size(); ++i) {
            CodeFacts::Collective collective{.offset = offsets[i]};
            const std::uint32_t mask = masks.size() == offsets.size() ? masks[i] : 0;
            collective.is_of_all = mask == 0xffffffff;
            collective.is_uniform = mask >> 8 == 0x0b0000;
            if (mask >> 8 == 0x050000 || collective.is_uniform) collective.mask = std::uint8_t(mask);
            facts.collectives.push_back(collective);
        }
        std::sort(facts.collectives.begin(), facts.collectives.end(),
                  [](const auto& a, const auto& b) { return a.offset < b.offset; });
        return sound;
    }

    static void read_words(std::span<const std::uint8_t> bytes, std::vector<std::uint32_t>& words) {
        std::uint32_t word = 0;
        for (std::size_t at = 0; load(bytes, at, word); at += 4) words.push_back(word);
    }

    /// Records of: offset of the branch, two halves, number of targets, targets.
    static void read_branch_targets(std::span<const std::uint8_t> bytes, CodeFacts& facts) {
        std::uint32_t branch = 0, count = 0;
        for (std::size_t at = 0; load(bytes, at, branch) && load(bytes, at + 8, count);) {
            at += 12;
            CodeFacts::BranchTargets entry{branch, {}};
            std::uint32_t target = 0;
            for (; count > 0 && load(bytes, at, target); --count, at += 4) entry.targets.push_back(target);
            facts.branch_targets.push_back(std::move(entry));
        }
    }

    std::span<const std::uint8_t> image_;
    Cubin& cubin_;
};

} // namespace

const CubinSection* Cubin::find_section(std::string_view name) const {
    const auto found = sections_by_name.find(name);
    return found == sections_by_name.end() ? nullptr : &sections[found->second];
}

bool read_cubin(std::span<const std::uint8_t> image, Cubin& cubin, std::string& error) {
    cubin = Cubin{};
    error = Reader(image, cubin).read();
    return error.empty();
}

std::size_t elf_extent(const void* image, std::size_t limit, bool (*can_be_read)(const void*, std::size_t)) {
    Elf64_Ehdr header;
    if (limit < sizeof header) return 0;
    std::memcpy(&header, image, sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof(Elf64_Shdr))
        return 0;
    const std::uint64_t table = std::uint64_t(header.e_shnum) * sizeof(Elf64_Shdr);
    if (header.e_shoff > limit || table > limit - header.e_shoff) return 0;
    std::uint64_t extent = header.e_shoff + table;
    if (!can_be_read(image, extent)) return 0;
    const std::uint64_t programs = header.e_phoff + std::uint64_t(header.e_phnum) * header.e_phentsize;
    if (programs <= limit) extent = std::max(extent, programs);
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        std::memcpy(&section, static_cast<const char*>(image) + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type == SHT_NOBITS) continue;
        if (section.sh_offset > limit || section.sh_size > limit - section.sh_offset) return 0;
        extent = std::max(extent, section.sh_offset + section.sh_size);
    }
    return can_be_read(image, extent) ? extent : 0;
}

} // namespace ptarmigan::sass
