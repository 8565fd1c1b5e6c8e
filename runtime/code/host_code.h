// SPDX-License-Identifier: Apache-2.0
// Host code that a cubin brings (.nv.host): CUDA Tile's compiler writes tensor maps into hidden parameters of its
// kernels by functions for the host, an ELF object of which each launch calls the one for its kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

/// An object in this process, linked and executable; unmapped on destruction.
class HostCode {
public:
    /// Fills the hidden parameters behind the given ones in `parameters`, which lie as in the constant bank. What the
    /// first three are for is not known: no function that was seen reads them. 0 is success.
    using Function = int(void*, void*, void*, std::uint8_t* parameters);

    /// Null with the reason in `why` if it is damaged, for another host, or of a form that is not known. Its bytes are
    /// not kept.
    static std::unique_ptr<const HostCode> load(std::span<const std::uint8_t> object, std::string& why);
    ~HostCode();
    HostCode(const HostCode&) = delete;
    HostCode& operator=(const HostCode&) = delete;

    /// Null if there is none for that kernel.
    Function* find(std::string_view kernel) const;

private:
    struct Entry {
        std::string kernel;
        Function* function;
    };
    class Linker;

    HostCode() = default;

    std::uint8_t* base_ = nullptr;
    std::size_t size_ = 0;
    std::vector<Entry> entries_;
};

} // namespace ptarmigan::runtime
