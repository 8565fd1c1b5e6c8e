// SPDX-License-Identifier: Apache-2.0
// A fat binary with machine code for the device and older PTX beside it: the driver takes the machine code. A kernel of it
// that can't be lifted runs by the PTX, with the variables of the others, where the PTX has the same kernel. The cubin:
// ptxas 13.0 -arch=sm_90 -o ptx_beside.sm_90.cubin ptx_beside.ptx. In a process of its own.
#include "driver.h"
#include "fault_child.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

extern "C" {
CUresult cuLinkCreate_v2(unsigned, unsigned*, void**, CUlinkState*);
CUresult cuLinkAddData_v2(CUlinkState, int, void*, std::size_t, const char*, unsigned, unsigned*, void**);
CUresult cuLinkDestroy(CUlinkState);
}

namespace {

constexpr unsigned threads = 32, ptx_kind = 1, cubin_kind = 2;

std::string read(const char* name) {
    std::ifstream file(std::string(PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/") + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T> void put(std::string& bytes, std::size_t at, T value) {
    std::memcpy(&bytes[at], &value, sizeof value);
}

std::string entry(unsigned kind, unsigned architecture, std::string content) {
    content.resize((content.size() + 8) / 8 * 8);
    std::string header(64, '\0');
    put<std::uint16_t>(header, 0, static_cast<std::uint16_t>(kind));
    put<std::uint16_t>(header, 2, 0x0101);
    put<std::uint32_t>(header, 4, 64);
    put<std::uint64_t>(header, 8, content.size());
    put<std::uint16_t>(header, 0x1a, 7);
    put<std::uint32_t>(header, 0x1c, architecture);
    put<std::uint64_t>(header, 0x28, 0x11);
    return header + content;
}

/// Each instruction that holds a marked number becomes one that no table has.
std::string unknown_code() {
    std::string image = read("ptx_beside.sm_90.cubin");
    for (std::size_t at = 0; (at = image.find("\xed\x5e", at)) != std::string::npos; ++at) {
        const std::size_t first = at - 6; // the immediate stands in the middle of the instruction's first half
        image[first] = image[first + 1] = '\xff';
    }
    return image;
}

/// What the code was compiled from, as it would be for less: a kernel that is empty there, one for other blocks, and one that is not there.
std::string older_text() {
    std::string text = read("ptx_beside.ptx");
    const auto replace = [&](const std::string& from, const std::string& to) { text.replace(text.find(from), from.size(), to); };
    replace("sm_90", "sm_80");
    text.erase(text.find("// newer"), text.find("// end") - text.find("// newer"));
    replace(".maxntid 128", ".maxntid 256");
    text.erase(text.find(".visible .entry not_there"));
    return text;
}

std::string fat_binary() {
    std::string container(16, '\0');
    const std::string entries = entry(cubin_kind, 90, unknown_code()) + entry(ptx_kind, 80, older_text());
    put<std::uint32_t>(container, 0, 0xBA55ED50);
    put<std::uint16_t>(container, 4, 1);
    put<std::uint16_t>(container, 6, 16);
    put<std::uint64_t>(container, 8, entries.size());
    return container + entries;
}

/// Launches kernels of one image.
class Program {
public:
    bool begin() {
        std::string image = fat_binary();
        if (!driver_test::begin_on(0) || cuMemAlloc_v2(&memory_, 4 * threads)) return false;
        if (cuModuleLoadData(&module_, image.data())) return false;
        image.assign(image.size(), '\0'); // the driver has what it needs
        return true;
    }
    int launch(const char* name) {
        CUfunction kernel = nullptr;
        if (cuModuleGetFunction(&kernel, module_, name)) return -1;
        void* parameters[] = {&memory_};
        const int code = cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr);
        const int wait = cuCtxSynchronize();
        return code == wait ? code : -1;
    }
    std::array<std::uint32_t, threads> words() const {
        std::array<std::uint32_t, threads> words{};
        return cuMemcpyDtoH_v2(words.data(), memory_, sizeof words) == 0 ? words : std::array<std::uint32_t, threads>{};
    }
    CUdeviceptr variable(const char* name) const {
        CUdeviceptr address = 0;
        std::size_t size = 0;
        return cuModuleGetGlobal_v2(&address, &size, module_, name) == 0 ? address : 0;
    }
    bool end() { return cuModuleUnload(module_) == 0 && cuMemFree_v2(memory_) == 0; }

private:
    CUmodule module_ = nullptr;
    CUdeviceptr memory_ = 0;
};

/// A bit for each thing that is not as it should be.
int use() {
    constexpr std::uint32_t table[] = {11, 22, 33, 44};
    Program program;
    if (!program.begin()) return -1;
    unsigned wrong = 0, next = 1;
    const auto check = [&](bool holds) {
        if (!holds) wrong |= next;
        next <<= 1;
    };
    const std::uint32_t factor = 7;
    check(cuMemcpyHtoD_v2(program.variable("factor"), &factor, sizeof factor) == 0);
    check(program.launch("known") == 0);
    for (unsigned round = 0; round < 2; ++round) {
        check(program.launch("unknown") == 0);
        const std::array<std::uint32_t, threads> words = program.words();
        bool right = true;
        for (std::uint32_t i = 0; i < threads; ++i) right = right && words[i] == ((i * factor + table[i & 3]) ^ 0x5eed0001);
        check(right);
    }
    std::uint32_t total = 0;
    check(cuMemcpyDtoH_v2(&total, program.variable("total"), sizeof total) == 0 && total == (factor + 2) * threads * (threads - 1) / 2);
    for (const char* refused : {"hollow", "other_tile", "not_there"}) check(program.launch(refused) == 801);
    check(program.end());
    CUlinkState link = nullptr;
    constexpr int fat_binary_input = 2;
    std::string image = fat_binary();
    check(cuLinkCreate_v2(0, nullptr, nullptr, &link) == 0);
    check(cuLinkAddData_v2(link, fat_binary_input, image.data(), image.size(), "both", 0, nullptr, nullptr) == 0);
    check(cuLinkDestroy(link) == 0);
    return static_cast<int>(wrong);
}

} // namespace

TEST_CASE("fault: ptx_beside", "[.]") {
    using Catch::Contains;
    const std::string said = driver_test::said_by_child([] {
        unsetenv("PTARMIGAN_MACHINE_CODE");
        return use();
    });
    CHECK_THAT(said, Contains("kernel unknown: its machine code (sm_90) can't be lifted") && Contains("the PTX for sm_80 beside it is taken"));
    CHECK_THAT(said, Contains("it does nothing") && Contains("it is for other blocks") && Contains("kernel not_there: its machine code"));
    CHECK_THAT(said, Contains("'both': its PTX for sm_80 is linked"));
    CHECK_THAT(said, Contains("code 0\n"));
}
