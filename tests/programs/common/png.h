// SPDX-License-Identifier: Apache-2.0
// Writes grey-scale PNG files without compression (stored deflate blocks).
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace test {

namespace png_detail {
inline std::uint32_t crc(const std::vector<std::uint8_t>& bytes, std::size_t first) {
    std::uint32_t value = 0xffffffffu;
    for (std::size_t i = first; i < bytes.size(); ++i) {
        value ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit) value = value & 1 ? 0xedb88320u ^ value >> 1 : value >> 1;
    }
    return ~value;
}
inline void big_endian(std::vector<std::uint8_t>& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}
inline void chunk(std::vector<std::uint8_t>& out, const char* type, const std::vector<std::uint8_t>& data) {
    big_endian(out, static_cast<std::uint32_t>(data.size()));
    const std::size_t first = out.size();
    out.insert(out.end(), type, type + 4);
    out.insert(out.end(), data.begin(), data.end());
    big_endian(out, crc(out, first));
}
} // namespace png_detail

/// False if the file can't be written.
inline bool write_png(const std::string& path, const std::vector<std::uint8_t>& pixels, std::uint32_t width,
                      std::uint32_t height) {
    using namespace png_detail;
    std::vector<std::uint8_t> header, stream = {0x78, 0x01}, out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    big_endian(header, width);
    big_endian(header, height);
    header.insert(header.end(), {8, 0, 0, 0, 0});
    std::uint32_t a = 1, b = 0;
    for (std::uint32_t y = 0; y < height; ++y) { // one stored block per row, so widths up to 65534
        const std::uint32_t length = width + 1;
        stream.push_back(y + 1 == height);
        for (std::uint32_t half : {length, ~length}) {
            stream.push_back(static_cast<std::uint8_t>(half));
            stream.push_back(static_cast<std::uint8_t>(half >> 8));
        }
        for (std::uint32_t x = 0; x < length; ++x) {
            const std::uint8_t byte = x == 0 ? 0 : pixels[std::size_t{y} * width + x - 1];
            stream.push_back(byte);
            a = (a + byte) % 65521;
            b = (b + a) % 65521;
        }
    }
    big_endian(stream, b << 16 | a);
    chunk(out, "IHDR", header);
    chunk(out, "IDAT", stream);
    chunk(out, "IEND", {});
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) return false;
    const bool ok = std::fwrite(out.data(), 1, out.size(), file) == out.size();
    return std::fclose(file) == 0 && ok;
}

} // namespace test
