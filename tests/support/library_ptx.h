// SPDX-License-Identifier: Apache-2.0
// The PTX inside shared libraries, archives and fat binaries: containers are found by their magic
// number, wherever a linker or a library's author put them, and read by the driver's own reader.
#pragma once

#include "runtime/module/fatbin.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::test {

/// A file mapped for reading; empty if it can't be.
class MappedFile {
public:
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

private:
    void* data_ = nullptr;
    std::size_t size_ = 0;
};

struct EmbeddedPtx {
    std::uint64_t offset = 0; ///< of the container, in the file
    unsigned index = 0;       ///< among the container's PTX entries
    runtime::PtxEntry entry;  ///< points into the bytes that were searched
};

/// All PTX entries in order. `damaged` counts what has the magic number and no sound headers.
std::vector<EmbeddedPtx> find_embedded_ptx(std::string_view bytes, unsigned& damaged);

} // namespace ptarmigan::test
