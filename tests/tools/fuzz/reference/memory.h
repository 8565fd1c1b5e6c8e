// SPDX-License-Identifier: Apache-2.0
// Byte arrays at generic addresses; whatever lies outside of all of them is an error of the program.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace fuzz::reference {

class Memory {
public:
    void add(std::uint64_t begin, unsigned char* bytes, std::uint64_t size) { areas_.push_back({begin, size, bytes}); }
    void drop() { areas_.pop_back(); }

    unsigned char* at(std::uint64_t address, std::uint64_t size) const {
        for (const Area& area : areas_)
            if (address >= area.begin && address - area.begin + size <= area.size) return area.bytes + (address - area.begin);
        throw std::runtime_error("an access outside of all memory");
    }

private:
    struct Area {
        std::uint64_t begin, size;
        unsigned char* bytes;
    };
    std::vector<Area> areas_;
};

} // namespace fuzz::reference
