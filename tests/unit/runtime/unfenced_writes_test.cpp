// SPDX-License-Identifier: Apache-2.0
// What is kept of memory that threads write to without a proxy fence, byte by byte.
#include "fixture.h"

#include "runtime/exec/unfenced_writes.h"

#include <vector>

using namespace ptarmigan::runtime;
using namespace ptarmigan::runtime::test;

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Memory {
    Fixture fixture;
    DevicePointer address = 0;
    std::size_t size;
    ptarmigan::abi::CtaContext cta{};
    UnfencedWrites& writes = UnfencedWrites::get();

    explicit Memory(std::size_t bytes) : size(bytes) {
        REQUIRE(ok(memory_allocate(fixture.context(), size, address)));
        writes.fence();
        std::memset(at(0), 1, size);
    }
    ~Memory() { static_cast<void>(memory_free(fixture.context(), address)); }
    std::uint8_t* at(std::size_t offset) const { return reinterpret_cast<std::uint8_t*>(address + offset); }
    void write(std::size_t offset, std::uint32_t bytes, std::uint8_t value) {
        const std::uint64_t places[2] = {0, address + offset};
        writes.note(cta, places, 2, bytes);
        std::memset(at(offset), value, bytes);
    }
    Bytes seen(std::size_t offset, std::size_t bytes) {
        Bytes copy(at(offset), at(offset) + bytes);
        writes.undo(address + offset, bytes, copy.data());
        return copy;
    }
};

} // namespace

TEST_CASE("unfenced writes: copies see what was there, byte by byte, until a fence") {
    Memory memory(4096);
    CHECK_FALSE(memory.writes.any());
    memory.write(254, 4, 2); // in two blocks
    memory.write(255, 1, 3);
    CHECK(memory.writes.any());
    CHECK((memory.seen(252, 8) == Bytes(8, 1)));
    CHECK(memory.writes.touch(memory.address, 255));
    CHECK_FALSE(memory.writes.touch(memory.address, 254));
    CHECK_FALSE(memory.writes.touch(memory.address + 258, 1024));
    memory.writes.fence();
    CHECK_FALSE(memory.writes.any());
    CHECK((memory.seen(252, 8) == Bytes{1, 1, 2, 3, 2, 2, 1, 1}));
    memory.write(256, 1, 4);
    CHECK((memory.seen(252, 8) == Bytes{1, 1, 2, 3, 2, 2, 1, 1}));
}

TEST_CASE("unfenced writes: what copies write they see, and what they change is what was there") {
    Memory memory(4096);
    memory.write(0, 16, 2);
    memory.writes.forget(memory.address + 4, 4);
    CHECK((memory.seen(2, 8) == Bytes{1, 1, 2, 2, 2, 2, 1, 1}));
    memory.write(510, 4, 3);
    memory.writes.put_back(memory.address + 511, 2);
    CHECK((Bytes(memory.at(509), memory.at(515)) == Bytes{1, 3, 1, 1, 3, 1}));
    CHECK_FALSE(memory.writes.touch(memory.address + 511, 2));
    CHECK(memory.writes.touch(memory.address + 513, 1));
}

TEST_CASE("unfenced writes: others than threads end them, memory of the host and too many are left out") {
    Memory memory(std::size_t{200} << 20);
    memory.write(0, 4, 2);
    { const OutsideWrite writes; }
    CHECK((memory.seen(0, 4) == Bytes(4, 2)));
    Bytes host(64, 1);
    const std::uint64_t place = reinterpret_cast<std::uint64_t>(host.data());
    memory.writes.note(memory.cta, &place, 1, 4);
    CHECK_FALSE(memory.writes.any());
    for (std::size_t offset = 0; offset < memory.size; offset += 128) memory.write(offset, 1, 3);
    CHECK_FALSE(memory.writes.any());
    CHECK((memory.seen(0, 1) == Bytes(1, 3)));
    memory.writes.fence();
    memory.write(0, 1, 4);
    CHECK((memory.seen(0, 1) == Bytes(1, 3)));
}
