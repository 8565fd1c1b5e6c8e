// SPDX-License-Identifier: Apache-2.0
// A cache folder in one file and back, and archives that are damaged, foreign or made to do harm.
#include "frontend/module_loader.h"
#include "runtime/module/cache_archive.h"
#include "runtime/module/cache_key.h"
#include "runtime/module/kernel_file.h"
#include "temporary_folder.h"

#include <catch2/catch.hpp>
#include <zstd.h>

#include <fstream>
#include <iterator>

using namespace ptarmigan;
using runtime::ArchiveError;
using runtime::DiskCache;

namespace {

constexpr const char* build = "build";

std::string key_of(const std::string& kernel, const std::string& build_id, const translator::TargetCpu& target) {
    const auto loader = ptx::ModuleLoader::load(".version 9.0\n.target sm_90\n.address_size 64\n", "test.ptx");
    std::mutex mutex;
    runtime::KernelRequest request{*loader, mutex, runtime::hash_text("text"), kernel, {}, {}};
    request.shape.ntid = {64, 2, 1};
    request.options.target = target;
    return runtime::kernel_key(build_id, request);
}

std::vector<std::uint8_t> file_for(const std::string& key) {
    translator::CompiledKernel kernel;
    kernel.image.bytes.assign(4096, 0xc3);
    kernel.image.code_size = 4096;
    kernel.properties.lane_width = 16;
    kernel.properties.step_count = 8;
    return runtime::write_kernel_file(key, kernel);
}

void keep(DiskCache& cache, const std::string& key) {
    cache.store(runtime::file_name(key), file_for(key));
}

class Fixture {
public:
    Fixture() : from(folder_.path + "/from", 1u << 30), to(folder_.path + "/to", 1u << 30) {}
    std::string archive() const { return folder_.path + "/archive"; }
    runtime::ImportCounts import() { return runtime::import_cache(to, archive(), filter); }
    std::string contents() const {
        std::ifstream file(archive(), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& bytes) const { std::ofstream(archive(), std::ios::binary) << bytes; }
    /// An archive of these entries, each with the size that it claims.
    void write_entries(const std::vector<std::pair<std::uint64_t, std::vector<std::uint8_t>>>& entries) const {
        std::string plain;
        for (const auto& [size, bytes] : entries) {
            plain.append(reinterpret_cast<const char*>(&size), sizeof size);
            plain.append(bytes.begin(), bytes.end());
        }
        std::string packed(ZSTD_compressBound(plain.size()), '\0');
        packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 1));
        write(std::string("PTMCACH\n\1\0\0\0\0\0\0\0", 16) + packed);
    }

private:
    TemporaryFolder folder_;

public:
    const translator::TargetCpu host = translator::host_target();
    DiskCache from, to;
    const runtime::ImportFilter filter{build, {host.key()}};
};

} // namespace

TEST_CASE("cache key: says what it was made of") {
    const auto host = translator::host_target();
    const auto key = runtime::read_key(key_of("scale", build, host));
    REQUIRE(key);
    CHECK(!key->is_note);
    CHECK(key->build_id == build);
    CHECK(key->text_hash == runtime::hash_text("text"));
    CHECK(key->kernel == "scale");
    CHECK(key->shape.ntid == std::array<std::uint32_t, 3>{64, 2, 1});
    CHECK(key->target == host.key());
    const auto note = runtime::read_key(runtime::note_key(build, runtime::hash_text("text"), "fact"));
    REQUIRE(note);
    CHECK(note->is_note);
    CHECK(note->text_hash == runtime::hash_text("text"));
    const std::string whole = key_of("scale", build, host);
    for (const std::size_t size : {0, 7, 9, 40, 80}) CHECK(!runtime::read_key(whole.substr(0, size)));
}

TEST_CASE("cache archive: kernels and notes come back") {
    Fixture fixture;
    keep(fixture.from, key_of("a", build, fixture.host));
    keep(fixture.from, key_of("b", build, fixture.host));
    const std::string note = runtime::note_key(build, runtime::hash_text("text"), "fact");
    fixture.from.store(runtime::file_name(note), runtime::write_note_file(note, std::vector<std::uint8_t>{1, 2}));
    fixture.from.store("0123", std::vector<std::uint8_t>{1, 2, 3});
    const auto written = runtime::export_cache(fixture.from, fixture.archive());
    CHECK(written.files == 3);
    CHECK(written.skipped == 1);
    CHECK(written.bytes == fixture.contents().size());

    const auto counts = fixture.import();
    CHECK(counts.added == 3);
    CHECK(counts.damaged + counts.other_build + counts.other_target + counts.present + counts.not_kept == 0);
    for (const DiskCache::File& file : fixture.from.list())
        if (file.name != "0123") CHECK(fixture.to.load(file.name) == fixture.from.load(file.name));
    CHECK(fixture.import().present == 3);
}

TEST_CASE("cache archive: what this machine can't use is skipped and counted") {
    Fixture fixture;
    keep(fixture.from, key_of("mine", build, fixture.host));
    keep(fixture.from, key_of("other build", "another", fixture.host));
    translator::TargetCpu foreign = fixture.host;
    foreign.cpu = "elsewhere";
    keep(fixture.from, key_of("other target", build, foreign));
    runtime::export_cache(fixture.from, fixture.archive());
    const auto counts = fixture.import();
    CHECK(counts.added == 1);
    CHECK(counts.other_build == 1);
    CHECK(counts.other_target == 1);
    CHECK(fixture.to.list().size() == 1);
}

TEST_CASE("cache archive: every cut is noticed, and no damage is believed") {
    Fixture fixture;
    keep(fixture.from, key_of("a", build, fixture.host));
    keep(fixture.from, key_of("b", build, fixture.host));
    runtime::export_cache(fixture.from, fixture.archive());
    const std::string whole = fixture.contents();
    for (std::size_t size = 0; size < whole.size(); size += size < 32 ? 1 : 13) {
        fixture.write(whole.substr(0, size));
        CHECK_THROWS_AS(fixture.import(), ArchiveError);
    }
    for (std::size_t place = 0; place < whole.size(); place += place < 32 ? 1 : 7) {
        std::string damaged = whole;
        damaged[place] = static_cast<char>(damaged[place] ^ 0x55);
        fixture.write(damaged);
        try {
            fixture.import();
        } catch (const ArchiveError&) {
        }
    }
    // Whatever came through is what was written.
    for (const DiskCache::File& file : fixture.to.list()) CHECK(fixture.to.load(file.name) == fixture.from.load(file.name));
}

TEST_CASE("cache archive: hostile ones") {
    Fixture fixture;
    const auto good = file_for(key_of("good", build, fixture.host));
    // No file of a cache, and one with a key that is none: neither has a name.
    fixture.write_entries({{3, {1, 2, 3}}, {good.size(), good}, {0, {}}});
    auto counts = fixture.import();
    CHECK(counts.damaged == 1);
    CHECK(counts.added == 1);
    const auto traversal = file_for("../../../../tmp/evil");
    fixture.write_entries({{traversal.size(), traversal}, {0, {}}});
    CHECK(fixture.import().damaged == 1);
    // Sizes that are not there.
    for (const std::uint64_t size : {~0ull, 1ull << 40, 200ull << 20}) {
        fixture.write_entries({{size, {1, 2, 3}}});
        CHECK_THROWS_AS(fixture.import(), ArchiveError);
    }
    fixture.write_entries({{good.size(), good}}); // no end
    CHECK_THROWS_AS(fixture.import(), ArchiveError);
    fixture.write_entries({{0, {}}, {good.size(), good}}); // something behind it
    CHECK_THROWS_AS(fixture.import(), ArchiveError);
    CHECK(fixture.to.list().size() == 1);
}
