// SPDX-License-Identifier: Apache-2.0
// An entry is the function's address (8 bytes, of no interest here) and its frame's size as ULEB128.
#include "translator/jit/stack_sizes.h"

#include "translator/jit/image.h"

#include <llvm/Object/ObjectFile.h>
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

} // namespace

StackSizes read_stack_sizes(const llvm::object::ObjectFile& object) {
    StackSizes sizes;
    for (const llvm::object::SectionRef& section : object.sections()) {
        llvm::Expected<llvm::StringRef> name = section.getName(), contents = section.getContents();
        const bool is_it = name && contents && *name == ".stack_sizes";
        if (is_it) read_section(*contents, sizes);
        if (!name) llvm::consumeError(name.takeError());
        if (!contents) llvm::consumeError(contents.takeError());
    }
    return sizes;
}

} // namespace ptarmigan::translator
