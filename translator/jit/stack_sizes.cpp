// SPDX-License-Identifier: Apache-2.0
// An entry is the function's address (8 bytes, of no interest here) and its frame's size as ULEB128.
#include "translator/jit/stack_sizes.h"

#include "translator/jit/image.h"

#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/Endian.h>
#include <llvm/Support/LEB128.h>

#include <algorithm>

namespace ptarmigan::translator {
namespace {

/// Return address, saved registers and alignment, where LLVM's number leaves them out.
constexpr std::uint64_t call_overhead = 256;
constexpr std::uint64_t most = 1u << 30;

void read_section(llvm::StringRef contents, StackSizes& sizes) {
    const std::uint8_t *next = contents.bytes_begin(), *const end = contents.bytes_end();
    while (next != end) {
        if (end - next < 9) throw ImageError("image: .stack_sizes is cut off");
        next += 8;
        unsigned length = 0;
        const char* error = nullptr;
        const std::uint64_t frame = llvm::decodeULEB128(next, &length, end, &error);
        if (error) throw ImageError(std::string("image: .stack_sizes: ") + error);
        next += length;
        const std::uint64_t bytes = std::min(frame, most) + call_overhead;
        sizes.all = static_cast<std::uint32_t>(std::min(sizes.all + bytes, most));
        sizes.largest = std::max(sizes.largest, static_cast<std::uint32_t>(std::min(bytes, most)));
    }
}

/// What AArch64's functions take for spilled SVE registers, which LLVM's numbers leave out: it is taken by ADDVL, in
/// vectors.
std::uint64_t bytes_of_vectors(llvm::StringRef code) {
    constexpr std::uint64_t longest_vector = 64; // sve_bits()
    constexpr std::uint32_t frame_pointer = 29;
    std::uint64_t vectors = 0;
    for (std::size_t at = 0; at + 4 <= code.size(); at += 4) {
        const std::uint32_t word = llvm::support::endian::read32le(code.data() + at);
        const bool adds_vectors = (word & 0xffe0f800u) == 0x04205000u;
        const std::uint32_t count = word >> 5 & 0x3f; // of 6 bits with a sign
        if (adds_vectors && count >= 32 && (word >> 16 & 31) != frame_pointer) vectors += 64 - count;
    }
    return vectors * longest_vector;
}

} // namespace

StackSizes read_stack_sizes(const llvm::object::ObjectFile& object) {
    StackSizes sizes;
    std::uint64_t of_vectors = 0;
    const bool may_have_vectors = object.getArch() == llvm::Triple::aarch64;
    for (const llvm::object::SectionRef& section : object.sections()) {
        llvm::Expected<llvm::StringRef> name = section.getName(), contents = section.getContents();
        const bool is_it = name && contents && *name == ".stack_sizes";
        if (is_it) read_section(*contents, sizes);
        if (contents && may_have_vectors && section.isText()) of_vectors += bytes_of_vectors(*contents);
        if (!name) llvm::consumeError(name.takeError());
        if (!contents) llvm::consumeError(contents.takeError());
    }
    of_vectors = std::min(of_vectors, most);
    sizes.all = static_cast<std::uint32_t>(std::min(sizes.all + of_vectors, most));
    sizes.largest = static_cast<std::uint32_t>(std::min(sizes.largest + of_vectors, most));
    return sizes;
}

} // namespace ptarmigan::translator
