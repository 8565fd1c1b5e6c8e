// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/fatbin_writer.h"

#include "frontend/parse/module_parser.h"

#include <cstring>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t container_header = 16, entry_header = 64;
constexpr std::uint64_t flag_64_bit = 0x1, flag_linux = 0x10;
constexpr std::uint64_t flag_arch_specific = 0x100000, flag_family = 0x200000;

template <typename T> void store(std::vector<std::uint8_t>& bytes, std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
}

} // namespace

std::vector<std::uint8_t> write_container(std::string_view text) {
    ptx::SourceBuffer source{std::string(text.substr(0, 4096)), "linked"};
    ptx::Diagnostics unused(source, 1);
    ptx::Version version;
    ptx::Target target;
    unsigned address_size = 64;
    static_cast<void>(ptx::ModuleParser(source.text(), unused).header(version, target, address_size));

    const std::size_t stored = (text.size() + 1 + 7) / 8 * 8; // at least one NUL ends the text
    std::vector<std::uint8_t> bytes(container_header + entry_header + stored);
    store<std::uint32_t>(bytes, 0, 0xBA55ED50);
    store<std::uint16_t>(bytes, 4, 1);
    store<std::uint16_t>(bytes, 6, container_header);
    store<std::uint64_t>(bytes, 8, entry_header + stored);
    const std::size_t entry = container_header;
    store<std::uint16_t>(bytes, entry + 0x00, 1); // PTX
    store<std::uint16_t>(bytes, entry + 0x02, 0x0101);
    store<std::uint32_t>(bytes, entry + 0x04, entry_header);
    store<std::uint64_t>(bytes, entry + 0x08, stored);
    store<std::uint16_t>(bytes, entry + 0x18, version.minor);
    store<std::uint16_t>(bytes, entry + 0x1a, version.major);
    store<std::uint32_t>(bytes, entry + 0x1c, target.sm);
    std::uint64_t flags = flag_64_bit | flag_linux;
    if (target.suffix == 'a') flags |= flag_arch_specific;
    if (target.suffix == 'f') flags |= flag_family;
    store<std::uint64_t>(bytes, entry + 0x28, flags);
    std::memcpy(bytes.data() + entry + entry_header, text.data(), text.size());
    return bytes;
}

} // namespace ptarmigan::runtime
