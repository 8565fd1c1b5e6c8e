// SPDX-License-Identifier: Apache-2.0
// Our linker: one relocatable ELF object (x86-64 or AArch64) to a KernelImage. Everything relative is resolved here;
// what is left are 64-bit absolute places, so that an image can be stored and loaded without LLVM.
//
//   0                     code_size (page multiple)
//   | .text* | stubs ...  | .rodata* .data.rel.ro* | address slots |
#pragma once

#include "translator/compile.h"

#include <cstddef>
#include <stdexcept>
#include <string>

namespace llvm {
class MemoryBufferRef;
}

namespace ptarmigan::translator {

/// Name of the function at which an image is entered; the emitter gives it external linkage.
inline constexpr const char* entry_symbol = "ptarmigan_kernel";

/// Constants start on a boundary of this size behind the code.
inline constexpr std::size_t image_page_size = 4096;

/// KernelImage::Relocation::import for "image base + addend".
inline constexpr std::uint32_t image_base_import = 0xffffffffu;

/// A fault of ours, not of the PTX: an object that the linker does not understand, an import that the ABI does not
/// list. what() names it.
class ImageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Links `object`. Throws ImageError.
KernelImage link_image(llvm::MemoryBufferRef object);

} // namespace ptarmigan::translator
