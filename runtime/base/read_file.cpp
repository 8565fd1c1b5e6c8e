// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/read_file.h"

#include <cstdio>
#include <memory>

namespace ptarmigan::runtime {

Status read_file(const std::string& path, std::string& bytes) {
    if (path.empty()) return Status::invalid_value;
    // C's streams: reading a directory is an error of theirs, and an exception of iterators over std::ifstream.
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    if (!file) return Status::file_not_found;
    bytes.clear();
    char piece[1 << 16];
    while (const std::size_t size = std::fread(piece, 1, sizeof piece, file.get())) bytes.append(piece, size);
    return std::ferror(file.get()) ? Status::out_of_memory : Status::success;
}

} // namespace ptarmigan::runtime
