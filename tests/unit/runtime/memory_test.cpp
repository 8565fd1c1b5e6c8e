// SPDX-License-Identifier: Apache-2.0
// Device memory, range checks and copies, against the codes that an H200's driver gives.
#include "fixture.h"

#include <vector>

using namespace ptarmigan::runtime;
using namespace ptarmigan::runtime::test;

TEST_CASE("memory: allocations are 512-byte aligned and spaced, and found by inner addresses") {
    Fixture fixture;
    DevicePointer first = 0, second = 0, base = 0;
    std::size_t size = 0;
    REQUIRE(ok(memory_allocate(fixture.context(), 513, first)));
    REQUIRE(ok(memory_allocate(fixture.context(), 1, second)));
    CHECK(first % 512 == 0);
    CHECK(second % 512 == 0);
    CHECK((second >= first + 1024 || second + 512 <= first));
    REQUIRE(ok(memory_address_range(first + 512, base, size)));
    CHECK(base == first);
    CHECK(size == 513);
    CHECK(memory_address_range(first + 513, base, size) == Status::not_found);
}

TEST_CASE("memory: sizes and frees are checked like the driver does") {
    Fixture fixture;
    DevicePointer pointer = 0;
    CHECK(memory_allocate(fixture.context(), 0, pointer) == Status::invalid_value);
    CHECK(memory_allocate(fixture.context(), std::size_t{1} << 50, pointer) ==
          Status::out_of_memory);
    CHECK(ok(memory_free(fixture.context(), 0)));
    CHECK(memory_free(fixture.context(), 0x1234) == Status::invalid_value);
    REQUIRE(ok(memory_allocate(fixture.context(), 4096, pointer)));
    CHECK(memory_free(fixture.context(), pointer + 256) == Status::invalid_value);
    CHECK(ok(memory_free(fixture.context(), pointer)));
    CHECK(memory_free(fixture.context(), pointer) == Status::invalid_value);
}

TEST_CASE("memory: all of the device can be had, and comes back") {
    Fixture fixture;
    std::size_t before = 0, after = 0, total = 0;
    REQUIRE(ok(memory_info(fixture.context(), before, total)));
    for (int round = 0; round < 3; ++round) {
        DevicePointer large = 0;
        REQUIRE(ok(memory_allocate(fixture.context(), before / 4 * 3, large)));
        *reinterpret_cast<int *>(large) = 7;
        REQUIRE(ok(memory_free(fixture.context(), large)));
    }
    REQUIRE(ok(memory_info(fixture.context(), after, total)));
    CHECK(before == after);
}

TEST_CASE("memory: copies check their ranges at the call") {
    Fixture fixture;
    Stream &stream = fixture.stream();
    const DevicePointer device = fixture.allocate(4096);
    auto *pointer = reinterpret_cast<void *>(device);
    std::vector<char> host(8192, 'x');
    CHECK(ok(memory_copy(stream, Side::device, pointer, Side::host, host.data(), 4096, true)));
    CHECK(memory_copy(stream, Side::device, pointer, Side::host, host.data(), 4097, true) ==
          Status::invalid_value);
    CHECK(memory_copy(stream, Side::device, nullptr, Side::host, host.data(), 16, true) ==
          Status::invalid_value);
    CHECK(memory_copy(stream, Side::device, pointer, Side::host, nullptr, 16, true) ==
          Status::invalid_value);
    CHECK(memory_copy(stream, Side::host, host.data(), Side::device, host.data() + 64, 16, true) ==
          Status::invalid_value);
    CHECK(ok(memory_copy(stream, Side::device, nullptr, Side::host, nullptr, 0, true)));
    CHECK(ok(memory_copy(stream, Side::unified, host.data(), Side::unified, host.data() + 100, 16,
                         true)));
    CHECK(memory_fill(stream, device, 0, 1, 0, 4097, 1, true) == Status::invalid_value);
    CHECK(memory_fill(stream, device + 1, 0, 4, 0, 1, 1, true) == Status::invalid_value);
    CHECK(memory_fill(stream, device, 8, 1, 0, 16, 2, true) == Status::invalid_value);
    CHECK(stream.query() == Status::success); // nothing of this sticks
}

TEST_CASE("memory: boxes move what they should and nothing else") {
    Fixture fixture;
    const std::size_t pitch = 64;
    const DevicePointer device = fixture.allocate(pitch * 16);
    std::vector<std::uint8_t> source(10 * 8), back(pitch * 16);
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<std::uint8_t>(i + 1);
    CopyBox box;
    box.source = {Side::host, source.data(), 10, 0, 2, 1, 0};
    box.destination = {Side::device, reinterpret_cast<void *>(device), pitch, 0, 5, 3, 0};
    box.width_bytes = 7;
    box.height = 4;
    REQUIRE(ok(memory_copy(fixture.stream(), box, true)));
    REQUIRE(ok(memory_copy(fixture.stream(), Side::host, back.data(), Side::device,
                           reinterpret_cast<void *>(device), back.size(), true)));
    for (std::size_t y = 0; y < 16; ++y)
        for (std::size_t x = 0; x < pitch; ++x) {
            const bool inside = y >= 3 && y < 7 && x >= 5 && x < 12;
            const int expected = inside ? static_cast<int>((y - 2) * 10 + (x - 3) + 1) : 0;
            CHECK(int(back[y * pitch + x]) == expected);
        }
    box.destination.pitch = 6; // narrower than the box
    CHECK(memory_copy(fixture.stream(), box, true) == Status::invalid_value);
}

TEST_CASE("memory: stream-ordered memory is freed once, in order") {
    Fixture fixture;
    DevicePointer pointer = 0;
    const std::shared_ptr<MemoryPool> pool = fixture.context().default_pool();
    CHECK(ok(pool_allocate(fixture.stream(), pool, 0, pointer)));
    REQUIRE(ok(pool_allocate(fixture.stream(), pool, 4096, pointer)));
    CHECK(ok(pool_free(fixture.stream(), pointer)));
    CHECK(pool_free(fixture.stream(), pointer) == Status::invalid_value);
    CHECK(memory_fill(fixture.stream(), pointer, 0, 1, 0, 16, 1, true) == Status::invalid_value);
}

TEST_CASE("memory: registered and pinned memory") {
    Fixture fixture;
    std::vector<char> host(1 << 16);
    DevicePointer device = 0;
    CHECK(host_device_pointer(host.data(), 0, device) == Status::invalid_value);
    CHECK(host_register(fixture.context(), nullptr, 16, 0) == Status::invalid_value);
    REQUIRE(ok(host_register(fixture.context(), host.data(), host.size(), 0)));
    CHECK(host_register(fixture.context(), host.data(), host.size(), 0) ==
          Status::host_memory_already_registered);
    CHECK(ok(host_device_pointer(host.data(), 0, device)));
    CHECK(device == reinterpret_cast<DevicePointer>(host.data()));
    CHECK(ok(host_unregister(fixture.context(), host.data())));
    CHECK(host_unregister(fixture.context(), host.data()) == Status::host_memory_not_registered);
    void *pinned = nullptr;
    REQUIRE(ok(host_allocate(fixture.context(), 100, 0, pinned)));
    unsigned type = 0;
    CHECK(ok(pointer_attribute(2, reinterpret_cast<DevicePointer>(pinned) + 5, &type)));
    CHECK(type == 1);
    CHECK(ok(host_free(fixture.context(), pinned)));
    CHECK(host_free(fixture.context(), pinned) == Status::invalid_value);
}

TEST_CASE("module: variables are placed, initialised and found") {
    Fixture fixture;
    DevicePointer table = 0, address = 0, factor = 0;
    std::size_t size = 0;
    REQUIRE(ok(fixture.module->find_global("table", table, size)));
    CHECK(size == 16);
    CHECK(reinterpret_cast<const std::uint32_t *>(table)[2] == 3);
    REQUIRE(ok(fixture.module->find_global("table_address", address, size)));
    CHECK(*reinterpret_cast<const DevicePointer *>(address) == table);
    REQUIRE(ok(fixture.module->find_global("factor", factor, size)));
    CHECK(*reinterpret_cast<const float *>(factor) == 2.0f);
    CHECK(fixture.module->find_global("nope", factor, size) == Status::not_found);
    CHECK(memory_free(fixture.context(), table) == Status::invalid_value);
}
