// SPDX-License-Identifier: Apache-2.0
// From a KernelImage (bytes and relocations) to code in this process, and back from a code address to the
// kernel and PTX line that it belongs to. No compiler here: see kernel_cache.h for where images come from.
#pragma once

#include "translator/compile.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

/// An image mapped into this process: code read-execute, constants read-only. Registered for find_code() while
/// it lives; unmapped on destruction, which must not happen while its code runs.
class LoadedImage {
public:
    /// Maps and relocates `image`. Throws std::runtime_error if the image is malformed (an offset outside it, an
    /// unknown import) or memory can't be had. `name` is what find_code() reports.
    static std::unique_ptr<LoadedImage> load(const translator::KernelImage& image, std::string name);
    ~LoadedImage();
    LoadedImage(const LoadedImage&) = delete;
    LoadedImage& operator=(const LoadedImage&) = delete;

    const void* entry() const { return entry_; }
    const std::string& name() const { return name_; }
    std::uintptr_t code_begin() const { return reinterpret_cast<std::uintptr_t>(base_); }
    std::uintptr_t code_end() const { return code_begin() + code_size_; }
    const std::vector<translator::LineEntry>& lines() const { return lines_; }
    /// What is known of a code address inside this image, null if nothing. Async-signal-safe.
    const translator::LineEntry* entry_of(std::uintptr_t address) const noexcept;

private:
    LoadedImage() = default;

    std::string name_;
    std::uint8_t* base_ = nullptr;
    std::size_t mapped_size_ = 0;
    std::size_t code_size_ = 0;
    const void* entry_ = nullptr;
    std::vector<translator::LineEntry> lines_;
    int slot_ = -1; ///< place in the registry of code ranges
};

/// What a code address belongs to. `kernel` lives as long as the image does.
struct CodeLocation {
    const char* kernel = nullptr;
    std::uint32_t line = 0;   ///< PTX line, 0 if unknown
    std::uint16_t access = 0; ///< as LineEntry::access
    const LoadedImage* image = nullptr;
};

/// Looks `address` up among the loaded images; false if it is no generated code. Async-signal-safe and lock-free:
/// fault handlers call it. For a return address pass address - 1.
bool find_code(std::uintptr_t address, CodeLocation& location) noexcept;

} // namespace ptarmigan::runtime
