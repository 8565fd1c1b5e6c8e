// SPDX-License-Identifier: Apache-2.0
// Copies and reductions through tensor maps: what each of the cases of tensor_case.h leaves in shared or global memory.
//
//     tensor_copies LIBCUDA --record                 prints a line per case: hash, completed bytes as expected or not, name
//     tensor_copies LIBCUDA --raw FILE [MOST]        also writes what was left (case number, count, bytes), up to MOST bytes each
//     tensor_copies LIBCUDA RECORDING [FIRST COUNT]  compares
//     tensor_copies LIBCUDA RECORDING own-cta        likewise; loads are to .shared::cta (PTX 8.6), and behind a prefetch of the
//                                                    same tile: what they leave must be the same (so it is on an H100, 2026-11-23)
#include "tests/recordings/async_copies/tensor_case.h"
#include "tests/recordings/driver.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

using namespace async_recording;
using recordings::Address;
using recordings::Driver;

namespace {

bool to_own_cta = false;

constexpr std::uint32_t result_words = 4; // in front of the tile: raw word of the mbarrier (2), completed

std::string coordinate_list(unsigned rank) {
    std::string text = "{";
    for (unsigned i = 0; i < rank; ++i) text += (i ? ", %c" : "%c") + std::to_string(i);
    return text + "}";
}

/// The statement's words, for a rank of 3.
std::string head_of(const CopyCase& c) {
    const bool im2col = c.map.kind == MapCase::Kind::im2col;
    if (c.direction == "load")
        return im2col ? "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
                      : "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";
    if (c.direction == "store")
        return im2col ? "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group"
                      : "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group";
    std::string head = im2col ? "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.im2col_no_offs.bulk_group"
                              : "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group";
    return head.replace(head.find(".add."), 5, "." + c.direction + ".");
}

std::string instruction(const CopyCase& c) {
    const std::string at = coordinate_list(c.map.rank);
    std::string text = head_of(c);
    text[text.find(".3d.") + 1] = char('0' + c.map.rank);
    if (c.direction != "load") return text + " [%map, " + at + "], [%tile];";
    std::string offsets;
    if (c.map.kind == MapCase::Kind::im2col) {
        for (unsigned i = 0; i + 2 < c.map.rank; ++i) offsets += (i ? ", %o" : ", {%o") + std::to_string(i);
        offsets += "}";
    }
    if (to_own_cta) {
        const std::string from = "::cluster.global.", to = "::cta.global.";
        text.replace(text.find(from), from.size(), to);
        const std::string dim = std::to_string(c.map.rank) + "d", mode = offsets.empty() ? "tile" : "im2col";
        text = "cp.async.bulk.prefetch.tensor." + dim + ".L2.global." + mode + " [%map, " + at + "]" + offsets + ";\n" + text;
    }
    return text + " [%tile], [%map, " + at + "], [bar]" + offsets + ";";
}

/// 128 threads: shared memory is filled from `data`, the first thread copies, and for loads shared memory goes to `data` again.
std::string kernel_text(const CopyCase& c) {
    std::string text = std::string(to_own_cta ? ".version 8.6" : ".version 8.0") + "\n.target sm_90\n.address_size 64\n"
        ".visible .entry copy(.param .align 64 .b8 map[128], .param .u64 data, .param .u32 at, .param .u32 expected";
    for (unsigned i = 0; i < 5; ++i) text += ", .param .s32 c" + std::to_string(i);
    for (unsigned i = 0; i < 3; ++i) text += ", .param .u16 o" + std::to_string(i);
    text += ")\n{\n.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .b64 %map; .reg .b32 %tile; .reg .b32 %c<5>; .reg .b16 %o<3>;\n"
        ".shared .align 1024 .b8 tile[" + std::to_string(shared_bytes) + "];\n.shared .align 8 .b64 bar;\n"
        "mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %d0, [data]; cvta.to.global.u64 %d0, %d0;\n"
        "mov.u32 %tile, tile; ld.param.u32 %r0, [at]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4;\n";
    for (unsigned i = 0; i < 5; ++i) text += "ld.param.s32 %c" + std::to_string(i) + ", [c" + std::to_string(i) + "];\n";
    for (unsigned i = 0; i < 3; ++i) text += "ld.param.u16 %o" + std::to_string(i) + ", [o" + std::to_string(i) + "];\n";
    text += "FILL: setp.ge.u32 %p0, %r2, " + std::to_string(shared_bytes) + "; @%p0 bra FILLED;\n"
        "cvt.u64.u32 %d1, %r2; add.u64 %d2, %d0, %d1; add.u32 %r3, %tile, %r2;\n"
        "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d2+16]; st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};\n"
        "add.u32 %r2, %r2, 2048; bra FILL;\nFILLED:\n"
        "setp.ne.u32 %p1, %r1, 0; mov.u32 %r8, bar;\n@!%p1 mbarrier.init.shared.b64 [%r8], 1;\n"
        "fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0; add.u32 %tile, %tile, %r0;\n@%p1 bra COPIED;\n";
    text += instruction(c) + "\n";
    if (c.direction == "load")
        // The first wait is by the clock, because the count is not known yet.
        text += "mov.u64 %d3, %globaltimer; SPIN: mov.u64 %d4, %globaltimer; sub.u64 %d4, %d4, %d3; setp.lt.u64 %p2, %d4, 6000; @%p2 bra SPIN;\n"
            "ld.volatile.shared.b64 %d5, [%r8]; st.global.b64 [%d0], %d5; ld.param.u32 %r9, [expected];\n"
            "mbarrier.arrive.expect_tx.shared.b64 %d6, [%r8], %r9; mov.u32 %r10, 0;\n"
            "WAIT: mbarrier.test_wait.shared.b64 %p3, [%r8], %d6; add.u32 %r10, %r10, 1; setp.lt.and.u32 %p2, %r10, 64, !%p3; @%p2 bra WAIT;\n"
            "selp.b32 %r11, 1, 0, %p3; st.global.b32 [%d0+8], %r11;\n";
    else
        text += "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; mov.b32 %r11, 1; st.global.b32 [%d0+8], %r11;\n";
    text += "COPIED: fence.proxy.async; bar.sync 0;\n";
    if (c.direction == "load")
        text += "mov.u32 %tile, tile; shl.b32 %r2, %r1, 4;\n"
            "SAVE: setp.ge.u32 %p0, %r2, " + std::to_string(shared_bytes) + "; @%p0 ret;\n"
            "cvt.u64.u32 %d1, %r2; add.u64 %d2, %d0, %d1; add.u32 %r3, %tile, %r2;\n"
            "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3]; st.global.v4.b32 [%d2+16], {%r4, %r5, %r6, %r7};\n"
            "add.u32 %r2, %r2, 2048; bra SAVE;\n";
    return text + "ret;\n}\n";
}

struct alignas(64) TensorMap {
    std::uint8_t bytes[128];
};

void encode(Driver& driver, TensorMap& map, const MapCase& m, Address address) {
    void* at = reinterpret_cast<void*>(address);
    if (m.kind == MapCase::Kind::tiled)
        return driver.call<TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*,
                           const std::uint32_t*, unsigned, unsigned, unsigned, unsigned>(
            "cuTensorMapEncodeTiled", &map, m.type, m.rank, at, m.dim.data(), m.stride.data(), m.box.data(), m.element_stride.data(),
            m.interleave, m.swizzle, m.promotion, m.fill);
    driver.call<TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const int*, const int*, unsigned, unsigned,
                const std::uint32_t*, unsigned, unsigned, unsigned, unsigned>(
        "cuTensorMapEncodeIm2col", &map, m.type, m.rank, at, m.dim.data(), m.stride.data(), m.lower.data(), m.upper.data(), m.channels,
        m.pixels, m.element_stride.data(), m.interleave, m.swizzle, m.promotion, m.fill);
}

struct Result {
    std::uint32_t head[result_words];
    std::vector<std::uint8_t> bytes; ///< the tile, or the tensor's memory
};

class Runner {
public:
    explicit Runner(const char* library)
        : driver_(library), tensor_(driver_.allocate(tensor_bytes)), data_(driver_.allocate(shared_bytes + 16)) {}

    Result run(const CopyCase& c) {
        const bool load = c.direction == "load";
        TensorMap map{};
        encode(driver_, map, c.map, tensor_ + 4096);
        const auto tensor = data_of(c, 1, tensor_bytes);
        auto tile = load ? std::vector<std::uint8_t>(shared_bytes + 16, 0xcd) : data_of(c, 2, shared_bytes + 16);
        std::memset(tile.data(), 0xee, 16);
        driver_.upload(tensor_, tensor.data(), tensor.size());
        driver_.upload(data_, tile.data(), tile.size());
        std::uint32_t at = c.shared_offset, expected = box_bytes(c);
        Address data = data_;
        CopyCase copy = c;
        std::uint16_t offsets[3];
        for (unsigned i = 0; i < 3; ++i) offsets[i] = std::uint16_t(c.offsets[i]);
        void* parameters[] = {&map, &data, &at, &expected, &copy.coordinates[0], &copy.coordinates[1], &copy.coordinates[2],
                              &copy.coordinates[3], &copy.coordinates[4], &offsets[0], &offsets[1], &offsets[2]};
        driver_.launch(module(c), "copy", 1, 128, 1, parameters);
        Result result;
        driver_.download(tile.data(), data_, tile.size());
        std::memcpy(result.head, tile.data(), 16);
        result.bytes.assign(tile.begin() + 16, tile.end());
        if (!load) {
            result.bytes.resize(tensor_bytes);
            driver_.download(result.bytes.data(), tensor_, tensor_bytes);
            // What differs, so that raw files stay small: offset of the first changed byte and up to the last one.
        }
        return result;
    }

private:
    void* module(const CopyCase& c) {
        const std::string text = kernel_text(c);
        void*& loaded = modules_[text];
        if (!loaded) loaded = driver_.load(text);
        return loaded;
    }
    Driver driver_;
    Address tensor_, data_;
    std::map<std::string, void*> modules_;
};

std::string line_of(unsigned index, const CopyCase& c, const Result& result) {
    char line[80];
    std::snprintf(line, sizeof line, "%016llx %u %s%u", static_cast<unsigned long long>(recordings::hash_bytes(result.bytes.data(), result.bytes.size())),
                  result.head[2], class_of(index).c_str(), index);
    static_cast<void>(c);
    return line;
}

void write_raw(std::ofstream& raw, unsigned index, const CopyCase& c, const Result& result, std::size_t most) {
    std::size_t first = 0, last = result.bytes.size();
    if (c.direction != "load") {
        const auto before = data_of(c, 1, tensor_bytes);
        while (first < last && before[first] == result.bytes[first]) ++first;
        while (last > first && before[last - 1] == result.bytes[last - 1]) --last;
    } else {
        while (last > 0 && result.bytes[last - 1] == 0xcd) --last;
    }
    const std::uint32_t head[8] = {index, std::uint32_t(first), std::uint32_t(last - first > most ? 0 : last - first),
                                   result.head[0], result.head[1], result.head[2], box_bytes(c), 0};
    raw.write(reinterpret_cast<const char*>(head), sizeof head);
    raw.write(reinterpret_cast<const char*>(result.bytes.data() + first), head[2]);
}

struct Job {
    const char *library, *recording_path, *raw_path;
    std::size_t most;
    unsigned first, count;
};

/// What the processes share: errors stick to a process, so another one goes on behind the case that failed.
struct Progress {
    unsigned next, passed, failed;
};

int work(const Job& job, Progress& progress) {
    std::map<std::string, std::string> recorded;
    if (job.recording_path) {
        std::ifstream file(job.recording_path);
        for (std::string hash, completed, name; file >> hash >> completed >> name;) recorded[name] = hash + " " + completed + " " + name;
    }
    std::ofstream raw;
    if (job.raw_path) raw.open(job.raw_path, std::ios::binary | std::ios::app);
    Runner runner(job.library);
    while (progress.next - job.first < job.count && !class_of(progress.next).empty()) {
        const unsigned i = progress.next++;
        const CopyCase c = copy_case(i);
        std::string line;
        bool lost = false;
        try {
            const Result result = runner.run(c);
            line = line_of(i, c, result);
            if (raw.is_open()) write_raw(raw, i, c, result, job.most);
        } catch (const std::exception& error) {
            const std::string text = error.what();
            const std::string code = text.substr(text.rfind(' ') + 1);
            line = code + " 0 " + class_of(i) + std::to_string(i);
            lost = code.size() == 3 && code[0] == '7';
        }
        if (!job.recording_path) std::printf("%s\n", line.c_str());
        else if (recorded[class_of(i) + std::to_string(i)] == line) ++progress.passed;
        else if (++progress.failed <= 20)
            std::printf("recorded %s\n     now %s: %s\n", recorded[class_of(i) + std::to_string(i)].c_str(), line.c_str(), describe(c).c_str());
        std::fflush(stdout);
        if (lost) return 3;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string option = argv[2];
    const bool recording = option.starts_with("--");
    Job job{argv[1], recording ? nullptr : argv[2], nullptr, 4096, 0, ~0u};
    if (option == "--raw" && argc > 3) std::remove(job.raw_path = argv[3]);
    if (option == "--raw" && argc > 4) job.most = std::strtoul(argv[4], nullptr, 10);
    to_own_cta = argc == 4 && argv[3] == std::string("own-cta");
    if (!recording && argc > 4) job.first = unsigned(std::atoi(argv[3])), job.count = unsigned(std::atoi(argv[4]));
    auto& progress = *static_cast<Progress*>(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    progress = {job.first, 0, 0};
    for (int status = 3; status == 3;) {
        const pid_t child = fork();
        if (child == 0) {
            int code = 1;
            try {
                code = work(job, progress);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s\n", error.what());
            }
            std::fflush(stdout);
            _exit(code);
        }
        if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status)) return 1;
        status = WEXITSTATUS(status);
        if (status != 0 && status != 3) return 1;
    }
    if (!recording) std::printf("%u equal, %u different\n", progress.passed, progress.failed);
    return progress.failed != 0 || (!recording && progress.passed == 0);
}
