// SPDX-License-Identifier: Apache-2.0
// Bulk copies and reductions without tensor maps, multicast inside a cluster of two, and tensormap.replace.
//
//     bulk_copies LIBCUDA [RECORDING]         prints "name answer" per case, or compares
//     bulk_copies LIBCUDA --raw FILE          also writes the bytes of reductions: target before, source, target after
#include "tests/recordings/async_copies/tensor_case.h"
#include "tests/recordings/driver.h"

#include <cstdio>
#include <cstring>
#include <fstream>

using namespace async_recording;
using recordings::Address;
using recordings::Driver;

namespace {

constexpr unsigned tile = 4096;

struct Case {
    std::string name, instruction;
    unsigned type = 2;     ///< CUtensorMapDataType of the data
    unsigned bytes = tile; ///< that the mbarriers expect
    bool cluster = false;  ///< two CTAs; the first copies to the second (or to both), both save their tiles
    bool to_global = false;
    unsigned receivers = 2; ///< bit per CTA whose mbarrier counts
};

const char* type_name(unsigned type) {
    static constexpr const char* names[] = {"u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16"};
    return names[type];
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    const auto add = [&](Case c) { cases.push_back(std::move(c)); };
    for (unsigned size : {16u, 32u, 48u, 112u, 128u, 1008u, 4096u}) {
        const std::string text = std::to_string(size);
        Case c;
        c.bytes = size;
        c.receivers = 1;
        c.name = "load_" + text;
        c.instruction = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%data], " + text + ", [%bar];";
        add(c);
        c.name = "load_hint_" + text;
        c.instruction = "createpolicy.fractional.L2::evict_last.b64 %d7; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%tile], [%data], " + text + ", [%bar], %d7;";
        add(c);
        c.to_global = true;
        c.name = "store_" + text;
        c.instruction = "cp.async.bulk.global.shared::cta.bulk_group [%data], [%tile], " + text + ";";
        add(c);
        c.to_global = false;
        c.cluster = true;
        c.receivers = 2;
        c.name = "to_cta_" + text;
        c.instruction = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%other], [%tile], " + text + ", [%obar];";
        add(c);
        for (unsigned mask : {1u, 2u, 3u}) {
            c.receivers = mask;
            c.name = "multicast_" + std::to_string(mask) + "_" + text;
            c.instruction = "mov.b16 %h0, " + std::to_string(mask) +
                            "; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%tile], [%data], " + text + ", [%bar], %h0;";
            add(c);
            c.name = "multicast_remote_" + std::to_string(mask) + "_" + text;
            c.instruction = "mov.b16 %h0, " + std::to_string(mask) +
                            "; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%other], [%data], " + text + ", [%obar], %h0;";
            add(c);
        }
    }
    struct Reduction {
        const char* op;
        std::vector<unsigned> global, shared;
    };
    const Reduction reductions[] = {{"add", {2, 3, 4, 7, 8}, {2, 3, 4}}, {"add.noftz", {6, 9}, {}}, {"min", {2, 3, 4, 5, 6, 9}, {2, 3}},
                                    {"max", {2, 3, 4, 5, 6, 9}, {2, 3}}, {"inc", {2}, {2}}, {"dec", {2}, {2}}};
    for (const Reduction& r : reductions) {
        for (unsigned type : r.global) {
            Case c;
            c.type = type;
            c.to_global = true;
            c.name = std::string("reduce_") + r.op + "_" + type_name(type);
            c.instruction = std::string("cp.reduce.async.bulk.global.shared::cta.bulk_group.") + r.op + "." + type_name(type) + " [%data], [%tile], 4096;";
            add(c);
        }
        for (unsigned type : r.shared) {
            Case c;
            c.type = type;
            c.cluster = true;
            c.name = std::string("reduce_to_cta_") + r.op + "_" + type_name(type);
            c.instruction = std::string("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.") + r.op + "." + type_name(type) +
                            " [%other], [%tile], 4096, [%obar];";
            add(c);
        }
    }
    for (const char* op : {"and", "or", "xor"})
        for (const char* bits : {"b32", "b64", "b32 to_cta"}) {
            Case c;
            c.cluster = std::strlen(bits) > 3;
            c.to_global = !c.cluster;
            c.name = std::string("reduce_") + op + "_" + (c.cluster ? "cta" : bits);
            c.instruction = c.cluster ? std::string("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.") + op +
                                            ".b32 [%other], [%tile], 4096, [%obar];"
                                      : std::string("cp.reduce.async.bulk.global.shared::cta.bulk_group.") + op + "." + bits + " [%data], [%tile], 4096;";
            add(c);
        }
    return cases;
}

std::string kernel_text(const Case& c) {
    std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 memory, .param .u64 tiles)\n";
    if (c.cluster) text += ".reqnctapercluster 2, 1, 1\n";
    text += "{\n.reg .b64 %data, %tiles, %d<8>; .reg .b32 %tile, %bar, %other, %obar, %r<16>; .reg .b16 %h<2>; .reg .pred %p<6>;\n"
        ".shared .align 1024 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n"
        "ld.param.u64 %data, [memory]; ld.param.u64 %tiles, [tiles]; mov.u32 %tile, tile; mov.u32 %bar, bar;\n"
        "mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %tid.x; mul.wide.u32 %d0, %r0, 4096; add.u64 %tiles, %tiles, %d0;\n"
        "shl.b32 %r2, %r1, 4; cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, %tiles; add.u32 %r3, %tile, %r2;\n"
        "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d1]; st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};\n"
        "setp.ne.u32 %p0, %r1, 0; shr.u32 %r8, " + std::to_string(c.receivers) + ", %r0; and.b32 %r8, %r8, 1; setp.ne.u32 %p1, %r8, 0;\n";
    if (c.to_global) text += "setp.ne.u32 %p1, 0, 0;\n";
    text += "@%p0 bra READY;\nmbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;\n"
        "@%p1 mbarrier.arrive.expect_tx.shared.b64 %d2, [%bar], " + std::to_string(c.bytes) + ";\nREADY: fence.proxy.async; bar.sync 0;\n";
    if (c.cluster) text += "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
    text += "mapa.shared::cluster.u32 %other, %tile, 1; mapa.shared::cluster.u32 %obar, %bar, 1;\n"
        "setp.ne.or.u32 %p2, %r0, 0, %p0; @%p2 bra ISSUED;\n" + c.instruction + "\n";
    if (c.to_global) text += "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n";
    text += "ISSUED: @!%p1 bra SAVE;\nWAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%bar], 0; @!%p3 bra WAIT;\n"
        "SAVE: ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3]; st.global.v4.b32 [%d1], {%r4, %r5, %r6, %r7};\n";
    if (c.cluster) text += "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
    return text + "ret;\n}\n";
}

struct alignas(64) TensorMap {
    std::uint8_t bytes[128];
};

struct Replacement {
    const char* field;
    int index; ///< of the field, or -1
    std::uint64_t value;
    unsigned rank; ///< of the map before
};

std::vector<Replacement> all_replacements() {
    std::vector<Replacement> list;
    for (std::uint64_t v : {0x7f0011223340ull, 0ull, 0x123456789abcdef0ull, 0x7f0011223345ull}) list.push_back({"global_address", -1, v, 3});
    for (std::uint64_t v : {0, 1, 2, 3, 4, 5, 7, 8}) list.push_back({"rank", -1, v, 3});
    for (std::uint64_t v = 0; v < 13; ++v) list.push_back({"elemtype", -1, v, 3});
    for (std::uint64_t v = 0; v < 3; ++v) list.push_back({"interleave_layout", -1, v, 3});
    for (std::uint64_t v = 0; v < 4; ++v) list.push_back({"swizzle_mode", -1, v, 3});
    for (std::uint64_t v = 0; v < 2; ++v) list.push_back({"fill_mode", -1, v, 3});
    for (int i = 0; i < 5; ++i) {
        for (std::uint64_t v : {1, 7, 256, 257, 0}) list.push_back({"box_dim", i, v, 5});
        for (std::uint64_t v : {1ull, 1000ull, 0ull, 0xffffffffull}) list.push_back({"global_dim", i, v, 5});
        for (std::uint64_t v : {1, 2, 3, 8, 9, 0}) list.push_back({"element_stride", i, v, 5});
        if (i < 4)
            for (std::uint64_t v : {16ull, 4096ull, 0x123456780ull, 0xabcdef1230ull, 17ull, 0x10000000000ull}) list.push_back({"global_stride", i, v, 5});
    }
    return list;
}

std::string replace(Driver& driver, const Replacement& r) {
    const bool immediate = std::strstr("elemtype interleave_layout swizzle_mode fill_mode", r.field) != nullptr;
    const bool wide = std::strstr("global_address global_stride", r.field) != nullptr;
    std::string text = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 map, .param .u64 value)\n{\n"
        ".reg .b64 %d<4>; .reg .b32 %r<2>; ld.param.u64 %d0, [map]; cvta.to.global.u64 %d0, %d0; ld.param.u64 %d1, [value]; cvt.u32.u64 %r0, %d1;\n"
        "tensormap.replace.tile." + std::string(r.field) + ".global.b1024." + (wide ? "b64" : "b32") + " [%d0], ";
    if (r.index >= 0) text += std::to_string(r.index) + ", ";
    text += (immediate ? std::to_string(r.value) : wide ? "%d1" : "%r0") + ";\nret;\n}\n";
    TensorMap map{};
    const std::uint64_t dim[5] = {64, 48, 40, 36, 20}, stride[4] = {256, 12288, 491520, 17694720};
    const std::uint32_t box[5] = {8, 12, 10, 8, 2}, step[5] = {1, 2, 1, 3, 1};
    driver.call<TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*,
                unsigned, unsigned, unsigned, unsigned>("cuTensorMapEncodeTiled", &map, 7, r.rank, reinterpret_cast<void*>(0x7f1234560000), dim,
                                                       stride, box, step, 0, 2, 1, 0);
    Address memory = driver.allocate(128);
    driver.upload(memory, &map, 128);
    void* module = driver.load(text);
    std::uint64_t value = r.value;
    void* parameters[] = {&memory, &value};
    driver.launch(module, "k", 1, 1, 1, parameters);
    driver.download(&map, memory, 128);
    driver.unload(module);
    std::string bytes;
    char digits[3];
    for (unsigned char byte : map.bytes) {
        std::snprintf(digits, sizeof digits, "%02x", byte);
        bytes += digits;
    }
    return bytes.substr(0, bytes.find_last_not_of('0') + 1);
}

std::string copy(Driver& driver, const Case& c, std::ofstream& raw) {
    CopyCase data;
    data.map.type = c.type;
    data.data_seed = recordings::hash_bytes(c.name.data(), c.name.size());
    data.direction = "reduce";
    auto memory = data_of(data, 1, tile), tiles = data_of(data, 2, 2 * tile);
    static const Address at = driver.allocate(tile), tiles_at = driver.allocate(2 * tile);
    const auto before = c.to_global ? memory : std::vector<std::uint8_t>(tiles.begin() + tile, tiles.end());
    const auto source = std::vector<std::uint8_t>(tiles.begin(), tiles.begin() + tile);
    driver.upload(at, memory.data(), tile);
    driver.upload(tiles_at, tiles.data(), 2 * tile);
    void* module = driver.load(kernel_text(c));
    Address first = at, second = tiles_at;
    void* parameters[] = {&first, &second};
    driver.launch(module, "k", c.cluster ? 2 : 1, 256, 1, parameters);
    driver.download(memory.data(), at, tile);
    driver.download(tiles.data(), tiles_at, 2 * tile);
    driver.unload(module);
    if (raw.is_open() && c.name.starts_with("reduce")) {
        raw.write(reinterpret_cast<const char*>(before.data()), tile).write(reinterpret_cast<const char*>(source.data()), tile);
        raw.write(reinterpret_cast<const char*>(c.to_global ? memory.data() : tiles.data() + tile), tile);
    }
    char text[64];
    std::snprintf(text, sizeof text, "%016llx %016llx", static_cast<unsigned long long>(recordings::hash_bytes(memory.data(), tile)),
                  static_cast<unsigned long long>(recordings::hash_bytes(tiles.data(), 2 * tile)));
    return text;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    std::ofstream raw;
    std::ifstream recording;
    if (argc > 3) raw.open(argv[3], std::ios::binary);
    else if (argc > 2) recording.open(argv[2]);
    const bool compare = recording.is_open();
    unsigned failed = 0, count = 0;
    const auto take = [&](const std::string& now) {
        ++count;
        if (!compare) return void(std::puts(now.c_str()));
        std::string line;
        std::getline(recording, line);
        if (line != now && ++failed <= 20) std::printf("recorded %s\n     now %s\n", line.c_str(), now.c_str());
    };
    Driver driver(argv[1]);
    const auto run = [&](const std::string& name, const auto& body) {
        std::string answer;
        try {
            answer = body();
        } catch (const std::exception& error) {
            answer = error.what();
        }
        take(name + " " + answer);
    };
    for (const Case& c : all_cases()) run(c.name, [&] { return copy(driver, c, raw); });
    for (const Replacement& r : all_replacements())
        run(std::string(r.field) + (r.index < 0 ? "" : std::to_string(r.index)) + "_" + std::to_string(r.value), [&] { return replace(driver, r); });
    if (compare) std::printf("%u of %u differ\n", failed, count);
    return failed != 0;
}
