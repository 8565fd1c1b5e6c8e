// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/host_object.h"

#include "runtime/module/fatbin.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <string_view>

namespace ptarmigan::runtime {
namespace {

using Bytes = std::span<const std::uint8_t>;

/// The part of `bytes` at [offset, offset + size), empty if it does not lie inside.
Bytes part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) return {};
    return bytes.subspan(offset, size);
}

template <typename T> bool read(Bytes bytes, std::uint64_t offset, T& value) {
    const Bytes place = part(bytes, offset, sizeof value);
    if (place.size() != sizeof value) return false;
    std::memcpy(&value, place.data(), sizeof value);
    return true;
}

std::string_view text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Containers lie behind each other, each at a multiple of 8.
void containers_of(Bytes section, const std::string& member, std::vector<DeviceCode>& found) {
    for (std::uint64_t offset = 0; offset < section.size();) {
        const Bytes rest = section.subspan(offset);
        const std::uint64_t extent = container_extent(rest.data(), rest.size());
        if (extent == 0) return;
        found.push_back({member, rest.first(extent)});
        offset += (extent + 7) / 8 * 8;
    }
}

/// Containers in all sections of that name.
void search_elf(Bytes file, std::string_view wanted, const std::string& member, std::vector<DeviceCode>& found) {
    Elf64_Ehdr header;
    if (!read(file, 0, header) || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
        return;
    const auto section = [&](unsigned index, Elf64_Shdr& out) {
        return index < header.e_shnum && header.e_shoff <= file.size() &&
               read(file, header.e_shoff + std::uint64_t{index} * sizeof out, out);
    };
    Elf64_Shdr names{};
    if (!section(header.e_shstrndx, names)) return;
    const std::string_view strings = text_of(part(file, names.sh_offset, names.sh_size));
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr candidate{};
        if (!section(i, candidate) || candidate.sh_type == SHT_NOBITS || candidate.sh_name >= strings.size()) continue;
        const std::string_view name = strings.substr(candidate.sh_name);
        if (name.substr(0, name.find('\0')) == wanted)
            containers_of(part(file, candidate.sh_offset, candidate.sh_size), member, found);
    }
}

constexpr std::string_view whole_programs = ".nv_fatbin", relocatable = "__nv_relfatbin";
constexpr std::string_view archive_magic = "!<arch>\n", elf_magic = "\x7f"
                                                                    "ELF";
constexpr std::uint64_t member_header = 60;

/// `name/`, or `/offset` into the member `//` of long names.
std::string member_name(std::string_view field, std::string_view long_names) {
    if (field.size() > 1 && field[0] == '/' && field[1] >= '0' && field[1] <= '9') {
        const std::size_t offset = std::strtoul(std::string(field.substr(1)).c_str(), nullptr, 10);
        if (offset < long_names.size()) field = long_names.substr(offset);
    }
    return std::string(field.substr(0, field.find_first_of("/ \n")));
}

void search_archive(Bytes file, std::vector<DeviceCode>& found) {
    std::string_view long_names;
    for (std::uint64_t offset = archive_magic.size();;) {
        const std::string_view header = text_of(part(file, offset, member_header));
        if (header.size() != member_header || header.substr(58) != "`\n") return;
        const std::string_view field = header.substr(0, 16);
        const std::uint64_t size = std::strtoull(std::string(header.substr(48, 10)).c_str(), nullptr, 10);
        const Bytes member = part(file, offset + member_header, size);
        if (member.size() != size) return;
        if (field.substr(0, 2) == "//")
            long_names = text_of(member);
        else if (text_of(member).starts_with(elf_magic))
            search_elf(member, relocatable, member_name(field, long_names), found);
        offset += member_header + (size + 1) / 2 * 2;
    }
}

} // namespace

bool find_device_code(Bytes file, std::vector<DeviceCode>& found, std::string& why) {
    const std::string_view text = text_of(file);
    if (text.starts_with(elf_magic)) {
        search_elf(file, relocatable, {}, found);
    } else if (text.starts_with(archive_magic)) {
        search_archive(file, found);
    } else {
        why = text.starts_with("!<thin>\n") ? "thin archives hold no code: link their members"
                                            : "neither an ELF file nor an archive";
        return false;
    }
    return true;
}

ProgramCode find_program_code(Bytes file) {
    ProgramCode code;
    Elf64_Ehdr header;
    if (!text_of(file).starts_with(elf_magic) || !read(file, 0, header)) return code;
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN) return code;
    std::vector<DeviceCode> found;
    search_elf(file, whole_programs, {}, found);
    for (const DeviceCode& each : found) code.containers.push_back(each.container);
    found.clear();
    search_elf(file, relocatable, {}, found);
    for (const DeviceCode& each : found) code.units.push_back(each.container);
    return code;
}

} // namespace ptarmigan::runtime
