// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk: what is written comes back, and nothing else is believed.
#include "runtime/code/image_loader.h"
#include "runtime/module/kernel_file.h"

#include <catch2/catch.hpp>
#include <xxhash.h>

#include <cstring>
#include <random>

using namespace ptarmigan;
using runtime::read_kernel_file;
using runtime::write_kernel_file;

namespace {

constexpr std::size_t header_size = 40;

translator::CompiledKernel sample() {
    translator::CompiledKernel kernel;
    kernel.image.bytes.assign(4096 + 64, 0xc3);
    kernel.image.code_size = 4096;
    kernel.image.entry_offset = 16;
    kernel.image.relocations = {{4096, 0xffffffffu, 32}, {4104, 1, 0}};
    kernel.image.lines = {{16, 10}, {20, 11}, {40, 10}};
    kernel.properties.uses_fibers = true;
    kernel.properties.lane_width = 16;
    kernel.properties.step_count = 8;
    kernel.properties.frame_size = 192;
    kernel.properties.cta_frame_size = 128;
    kernel.properties.static_shared = 2048;
    kernel.properties.reserved_shared = 1024;
    kernel.properties.local_bytes = 96;
    kernel.properties.stack_scale = 3;
    kernel.properties.streamed_bytes = 12;
    kernel.properties.ctas_in_row = 16;
    kernel.properties.spins = true;
    kernel.properties.alignment_demands = {{8, 3, 0}, {24, 15, 4}};
    kernel.properties.addresses.places = 2;
    kernel.properties.addresses.steps = {
        {translator::AddressProgram::Step::Kind::number, 1, {.kind = translator::LaunchNumber::Kind::parameter, .bits = 32, .value = 24}},
        {translator::AddressProgram::Step::Kind::access, 0, {.a = 1, .value = 4}}};
    kernel.image.stack_bytes = 4000;
    kernel.image.largest_frame = 3000;
    return kernel;
}

/// Makes the checksum right again, as someone who means harm would.
void forge_checksum(std::vector<std::uint8_t>& file) {
    const XXH128_hash_t sum = XXH3_128bits(file.data() + header_size, file.size() - header_size);
    std::memcpy(file.data() + 24, &sum.low64, 8);
    std::memcpy(file.data() + 32, &sum.high64, 8);
}

} // namespace

TEST_CASE("kernel file: everything comes back") {
    const translator::CompiledKernel written = sample();
    const auto read = read_kernel_file(write_kernel_file("some key", written), "some key");
    REQUIRE(read);
    CHECK(read->image.bytes == written.image.bytes);
    CHECK(read->image.code_size == 4096);
    CHECK(read->image.entry_offset == 16);
    REQUIRE(read->image.relocations.size() == 2);
    CHECK(read->image.relocations[1].offset == 4104);
    CHECK(read->image.relocations[1].import == 1);
    CHECK(read->image.relocations[0].addend == 32);
    REQUIRE(read->image.lines.size() == 3);
    CHECK(read->image.lines[2].offset == 40);
    CHECK(read->image.lines[2].line == 10);
    CHECK(read->properties.uses_fibers);
    CHECK(read->properties.lane_width == 16);
    CHECK(read->properties.step_count == 8);
    CHECK(read->properties.frame_size == 192);
    CHECK(read->properties.cta_frame_size == 128);
    CHECK(read->properties.static_shared == 2048);
    CHECK(read->properties.reserved_shared == 1024);
    CHECK(read->properties.local_bytes == 96);
    CHECK(read->properties.ctas_in_row == 16);
    CHECK_FALSE(read->properties.unbounded_stack);
    CHECK(read->properties.stack_scale == 3);
    CHECK(read->properties.spins);
    CHECK(read->properties.streamed_bytes == 12);
    REQUIRE(read->properties.alignment_demands.size() == 2);
    CHECK(read->properties.alignment_demands[1].offset == 24);
    CHECK(read->properties.alignment_demands[1].mask == 15);
    CHECK(read->properties.alignment_demands[1].residue == 4);
    CHECK(read->properties.addresses.places == 2);
    REQUIRE(read->properties.addresses.steps.size() == 2);
    CHECK(read->properties.addresses.steps[0].number.kind == translator::LaunchNumber::Kind::parameter);
    CHECK(read->properties.addresses.steps[0].number.value == 24);
    CHECK(read->properties.addresses.steps[1].number.a == 1);
    CHECK(read->image.stack_bytes == 4000);
    CHECK(read->image.largest_frame == 3000);
}

TEST_CASE("kernel file: another key is another kernel") {
    const auto file = write_kernel_file("some key", sample());
    CHECK_FALSE(read_kernel_file(file, "some kez"));
    CHECK_FALSE(read_kernel_file(file, "some key "));
    CHECK_FALSE(read_kernel_file(file, ""));
}

TEST_CASE("kernel file: cut short or too long") {
    auto file = write_kernel_file("k", sample());
    for (std::size_t size = 0; size < file.size(); ++size)
        REQUIRE_FALSE(read_kernel_file(std::span(file).first(size), "k"));
    file.push_back(0);
    CHECK_FALSE(read_kernel_file(file, "k"));
}

TEST_CASE("kernel file: a change of any byte is noticed") {
    const auto file = write_kernel_file("k", sample());
    for (std::size_t at = 0; at < file.size(); ++at)
        for (const std::uint8_t change : {0x01, 0x80, 0xff}) {
            auto damaged = file;
            damaged[at] ^= change;
            REQUIRE_FALSE(read_kernel_file(damaged, "k"));
        }
}

TEST_CASE("kernel file: forged ones are refused or harmless to load") {
    const auto file = write_kernel_file("k", sample());
    std::mt19937 random(1);
    unsigned accepted = 0, refused = 0;
    for (int round = 0; round < 20000; ++round) {
        auto forged = file;
        // Most of the file is code; aim at the fields before and behind it.
        const std::size_t fields = 80, tail = 120;
        const std::size_t at = round % 2 ? header_size + random() % fields
                                         : forged.size() - tail + random() % tail;
        const std::uint8_t interesting[] = {0x00, 0xff, 0x7f, 0x80, static_cast<std::uint8_t>(random())};
        for (std::size_t i = 0; i < 1 + random() % 8 && at + i < forged.size(); ++i)
            forged[at + i] = interesting[random() % 5];
        if (round % 5 == 0) {
            forged.resize(header_size + random() % (forged.size() - header_size));
            const std::uint64_t size = forged.size();
            std::memcpy(forged.data() + 16, &size, 8);
        }
        forge_checksum(forged);
        const auto kernel = read_kernel_file(forged, "k");
        if (!kernel) {
            ++refused;
            continue;
        }
        ++accepted;
        const auto image = runtime::LoadedImage::load(kernel->image, "forged");
        CHECK(image->entry() >= reinterpret_cast<const void*>(image->code_begin()));
        CHECK(image->entry() < reinterpret_cast<const void*>(image->code_end()));
    }
    CHECK(accepted > 100);
    CHECK(refused > 100);
}

TEST_CASE("image loader: a malformed image is refused") {
    const auto load = [](auto change) {
        translator::CompiledKernel kernel = sample();
        change(kernel.image);
        return runtime::LoadedImage::load(kernel.image, "bad");
    };
    CHECK_NOTHROW(load([](auto&) {}));
    CHECK_THROWS(load([](auto& image) { image.code_size = 4161; }));
    CHECK_THROWS(load([](auto& image) { image.code_size = 0; }));
    CHECK_THROWS(load([](auto& image) { image.entry_offset = 4096; }));
    CHECK_THROWS(load([](auto& image) { image.relocations[0].offset = 4153; }));
    CHECK_THROWS(load([](auto& image) { image.relocations[0].offset = 0xfffffffc; }));
    CHECK_THROWS(load([](auto& image) { image.relocations[1].import = 1000; }));
    CHECK_THROWS(load([](auto& image) { image.relocations[0].addend = 5000; }));
    CHECK_THROWS(load([](auto& image) { std::swap(image.lines[0], image.lines[2]); }));
}

TEST_CASE("note file: what is written comes back for its key, and nothing else is believed") {
    const std::vector<std::uint8_t> note{1, 2, 3, 0, 255};
    const auto file = runtime::write_note_file("some key", note);
    CHECK(runtime::read_note_file(file, "some key") == note);
    CHECK(runtime::read_note_file(runtime::write_note_file("k", {}), "k")->empty());
    CHECK_FALSE(runtime::read_note_file(file, "some kez"));
    CHECK_FALSE(read_kernel_file(file, "some key"));
    CHECK_FALSE(runtime::read_note_file(write_kernel_file("some key", sample()), "some key"));
    for (std::size_t size = 0; size < file.size(); ++size)
        REQUIRE_FALSE(runtime::read_note_file(std::span(file).first(size), "some key"));
    for (std::size_t at = 0; at < file.size(); ++at) {
        auto damaged = file;
        damaged[at] ^= 0x40;
        REQUIRE_FALSE(runtime::read_note_file(damaged, "some key"));
    }
    auto forged = file; // a length that reaches behind the end, with a right checksum
    forged[file.size() - note.size() - 8] = 6;
    forge_checksum(forged);
    CHECK_FALSE(runtime::read_note_file(forged, "some key"));
    forged[file.size() - note.size() - 8] = 4; // and one that leaves something over
    forge_checksum(forged);
    CHECK_FALSE(runtime::read_note_file(forged, "some key"));
}
