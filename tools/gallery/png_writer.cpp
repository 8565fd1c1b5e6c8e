// SPDX-License-Identifier: Apache-2.0
// PNG, the part that one picture needs: signature, header, one compressed data chunk, end.
#include "tools/gallery/png_writer.h"

#include <zlib.h>

#include <cstring>
#include <fstream>

namespace {

void put_big_endian(std::string& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

void put_chunk(std::string& out, const char* kind, const std::string& content) {
    put_big_endian(out, static_cast<std::uint32_t>(content.size()));
    std::string checked = kind + content;
    out += checked;
    put_big_endian(out, static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(checked.data()),
                                                         static_cast<uInt>(checked.size()))));
}

} // namespace

bool write_png(const std::string& path, const std::vector<std::uint8_t>& rgba, unsigned width, unsigned height) {
    std::string rows;
    for (unsigned y = 0; y < height; ++y) {
        rows += '\0'; // no filter
        rows.append(reinterpret_cast<const char*>(rgba.data()) + std::size_t{4} * width * y, std::size_t{4} * width);
    }
    uLongf packed_size = compressBound(rows.size());
    std::string packed(packed_size, '\0');
    if (compress2(reinterpret_cast<Bytef*>(packed.data()), &packed_size, reinterpret_cast<const Bytef*>(rows.data()),
                  rows.size(), 6) != Z_OK)
        return false;
    packed.resize(packed_size);

    std::string header;
    put_big_endian(header, width);
    put_big_endian(header, height);
    header += std::string("\x08\x06\x00\x00\x00", 5); // 8 bits, RGBA, no interlace
    std::string out = "\x89PNG\r\n\x1a\n";
    put_chunk(out, "IHDR", header);
    put_chunk(out, "IDAT", packed);
    put_chunk(out, "IEND", "");
    std::ofstream file(path, std::ios::binary);
    file.write(out.data(), static_cast<std::streamsize>(out.size()));
    return static_cast<bool>(file.flush());
}
