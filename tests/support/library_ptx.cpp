// SPDX-License-Identifier: Apache-2.0
#include "tests/support/library_ptx.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ptarmigan::test {

MappedFile::MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
        const auto size = static_cast<std::size_t>(status.st_size);
        void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data != MAP_FAILED) {
            data_ = data;
            size_ = size;
        }
    }
    close(file);
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) munmap(data_, size_);
}

std::vector<EmbeddedPtx> find_embedded_ptx(std::string_view bytes, unsigned& damaged) {
    constexpr std::string_view magic = "\x50\xed\x55\xba"; // as stored: little-endian
    std::vector<EmbeddedPtx> found;
    damaged = 0;
    for (std::size_t at = bytes.find(magic); at != std::string_view::npos;) {
        std::uint64_t extent = 0;
        const std::string_view rest = bytes.substr(at);
        const runtime::ContainerContents contents =
            runtime::list_container(rest.data(), rest.size());
        if (contents.sound) {
            for (unsigned i = 0; i < contents.ptx.size(); ++i)
                found.push_back({at, i, contents.ptx[i]});
        } else if (rest.size() >= 16 && rest.substr(4, 4) == std::string_view("\1\0\x10\0", 4)) {
            ++damaged; // the number alone, without version 1 and a header of 16 bytes, is a
                       // coincidence
        }
        if (contents.sound && !contents.ptx.empty()) {
            const runtime::PtxEntry& last = contents.ptx.back();
            extent = static_cast<std::uint64_t>(reinterpret_cast<const char*>(last.payload) +
                                                last.stored_size - rest.data());
        }
        at = bytes.find(magic, at + std::max<std::uint64_t>(extent, magic.size()));
    }
    return found;
}

} // namespace ptarmigan::test
