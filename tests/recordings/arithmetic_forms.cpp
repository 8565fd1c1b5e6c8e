// SPDX-License-Identifier: Apache-2.0
// Runs every arithmetic form of a list on crossed edge values and pseudo-random operands and compares a hash of all
// results with the one recorded on a GPU. Needs only the driver API, so the same program records and verifies:
//   arithmetic_forms LIBCUDA FORMS.txt            compares; fails if a form differs or a known difference is gone
//   arithmetic_forms LIBCUDA FORMS.txt --every N  compares every Nth line
//   arithmetic_forms LIBCUDA FORMS.txt --record   prints the list with the hashes of this driver
//   arithmetic_forms LIBCUDA FORMS.txt --show N   prints operands and results of line N
//   arithmetic_forms LIBCUDA FORMS.txt --sample N prints the results of N tuples of every line
//   arithmetic_forms LIBCUDA FORMS.txt --print    prints the PTX: a kernel kN for each line, from 0
// Lists: forms.h.
#include "tests/recordings/driver.h"
#include "tests/recordings/forms.h"
#include "tests/recordings/random.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using recordings::Address;
using recordings::Driver;
using recordings::Form;

constexpr unsigned tuples = 16384, crossed = 4096;
constexpr const char* head = ".version 9.0\n.target sm_90\n.address_size 64\n";

// --- operands ------------------------------------------------------------------------------------

/// What breaks arithmetic: limits, infinities, NaNs with payloads, subnormals, ties, shift amounts, limits of other types.
constexpr std::uint64_t edges64[64] = {
    0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 65, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
    0x8000000000000000, 0x8000000000000001, 0xffffffffffffffff, 0xfffffffffffffffe, 0x3ff0000000000000, 0xbff0000000000000,
    0x3fe0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0xc004000000000000, 0x7ff0000000000000, 0xfff0000000000000,
    0x7ff8000000000000, 0x7ff0000000000001, 0xfff8123400000000, 0x000fffffffffffff, 0x0010000000000000, 0x8010000000000000,
    0x7fefffffffffffff, 0xffefffffffffffff, 0x41e0000000000000, 0x41f0000000000000, 0x43e0000000000000, 0x43f0000000000000,
    0xc3e0000000000000, 0x3fb999999999999a, 0x47effffff0000000, 0x47f0000000000000, 0x3690000000000000, 0x380fffffe0000000,
    0x40effc0000000000, 0x40effdffffffffff, 0x3e45798ee2308c3a, 0x406ff00000000000, 0x3ff0000000000001, 0x3fefffffffffffff,
    0x3cb0000000000000, 0x4340000000000001, 0x0000000000000fff, 0x123456789abcdef0, 0xdeadbeefcafebabe, 0x5555555555555555,
    0xaaaaaaaaaaaaaaaa, 0x00ff00ff00ff00ff, 0x8000000080000000};
constexpr std::uint32_t edges32[64] = {
    0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffff, 0x800000,
    0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345,
    0x007fffff, 0x80800000, 0x3f800000, 0xbf800000, 0x3f000000, 0x3f7fffff, 0x3f800001, 0x4b800000, 0x4f000000, 0xcf000000,
    0x4f800000, 0x5f000000, 0x7f7fffff, 0xff7fffff, 0x3fc00000, 0x40200000, 0xc0200000, 0x3dcccccd, 0x40490fd0, 0x000116c2,
    0x477fe000, 0x477ff000, 0x501502f9, 0x12345678, 0x9abcdef0, 0x437f8000, 0xc3008000, 0x43e00000, 0x47600000, 0x33000000,
    0x38800000, 0x7fff8001, 0xaaaaaaaa};
constexpr std::uint16_t edges16[64] = {
    0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0x8001, 0xffff, 0xfffe, 0x7c00, 0xfc00, 0x7e00,
    0x7c01, 0xfe12, 0x3c00, 0xbc00, 0x3800, 0x7bff, 0xfbff, 0x0400, 0x03ff, 0x83ff, 0x8400, 0x7f80, 0xff80, 0x7fc0, 0x7f81,
    0x3f80, 0xbf80, 0x0080, 0x007f, 0x807f, 0x4248, 0x5000, 0x6400, 0x6800, 0x3c01, 0x3bff, 0x3555, 0xc500, 0x4d00, 0xcd00,
    0x5bf8, 0x7b00, 0x477f, 0x4f00, 0x5f00, 0xdf00, 0x7f7f, 0xff7f, 0x1234, 0xabcd, 0x5555, 0xaaaa};

std::uint64_t edge(unsigned bits, unsigned index) {
    if (bits == 64) return edges64[index % 64];
    if (bits == 32) return edges32[index % 64];
    return edges16[index % 64];
}

/// Edge values crossed (all pairs of 64, triples of 16, quadruples of 8, those in turn from all 64), then random bits, half of them floats near one another.
std::uint64_t operand(unsigned bits, unsigned place, unsigned count, unsigned tuple, recordings::Random& random) {
    if (tuple < crossed) {
        if (count < 3) return edge(bits, place == 0 ? tuple / 64 : tuple);
        if (count == 3) return edge(bits, (tuple >> 4 * (2 - place)) % 16 * 4 + (tuple / 7 + place) % 4);
        return edge(bits, (tuple >> 3 * (3 - place)) % 8 * 8 + (tuple / 7 + place) % 8);
    }
    std::uint64_t value = random.bits();
    if (tuple % 2 == 0 || bits < 32) return value;
    if (bits == 32) return (value & 0x807fffff) | (120 + value % 16) << 23;
    return (value & 0x800fffffffffffff) | (1016 + value % 16) << 52;
}

// --- PTX -----------------------------------------------------------------------------------------

std::string kernel_text(const Form& form, unsigned id) {
    std::string body;
    for (unsigned i = 0; i < form.sources.size(); ++i)
        if (!recordings::is_immediate(form.sources[i]))
            body += "ld.global.u64 %q2, [%s" + std::to_string(i) + "];\n" + recordings::operand_load(form, i, "%q2");
    body += recordings::operation(form);
    std::ostringstream text;
    text << ".visible .entry k" << id << "(.param .u64 s0, .param .u64 s1, .param .u64 s2, .param .u64 s3, .param .u64 d)\n{\n"
         << recordings::form_registers << ".reg .b64 %s<8>;\n"
         << "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
         << "mul.wide.u32 %s5, %r5, 8;\n";
    for (unsigned i = 0; i < 5; ++i)
        text << "ld.param.u64 %s" << (i == 4 ? 6 : i) << ", [" << (i == 4 ? "d" : "s" + std::to_string(i)) << "]; add.s64 %s"
             << (i == 4 ? 6 : i) << ", %s" << (i == 4 ? 6 : i) << ", %s5;\n";
    text << body << "st.global.u64 [%s6], %q1;\nret;\n}\n";
    return text.str();
}

// --- driver --------------------------------------------------------------------------------------

std::vector<std::uint64_t> run(Driver& driver, void* module, const Form& form, unsigned id,
                               std::vector<std::vector<std::uint64_t>>& sources) {
    static Address buffers[5] = {};
    std::size_t bytes = tuples * 8;
    if (!buffers[0])
        for (Address& buffer : buffers) buffer = driver.allocate(4 * bytes); // statements may use 32 bytes of the last source
    recordings::Random random(12345);
    sources.assign(form.sources.size(), std::vector<std::uint64_t>(tuples));
    const unsigned count = form.operand_count();
    for (unsigned i = 0; i < form.sources.size(); ++i) {
        if (recordings::is_immediate(form.sources[i])) continue;
        for (unsigned t = 0; t < tuples; ++t) {
            const unsigned bits = recordings::bits_of(form.sources[i]);
            sources[i][t] = operand(bits == 8 ? 16 : bits, i, count, t, random);
        }
        driver.upload(buffers[i], sources[i].data(), bytes);
    }
    void* arguments[] = {&buffers[0], &buffers[1], &buffers[2], &buffers[3], &buffers[4]};
    driver.launch(module, "k" + std::to_string(id), tuples / 256, 256, 1, arguments);
    std::vector<std::uint64_t> results(tuples);
    driver.download(results.data(), buffers[4], bytes);
    return results;
}

int compare(int argc, char** argv) {
    const recordings::FormList list = recordings::read_forms(argv[2]);
    const std::vector<Form>& forms = list.forms;
    std::string option = argc > 3 ? argv[3] : "";
    const unsigned step = option == "--every" ? std::max(1, std::atoi(argv[4])) : 1;
    std::string text = head + list.declarations;
    for (unsigned i = 0; i < forms.size(); i += step) text += kernel_text(forms[i], i);
    if (option == "--print") {
        std::printf("%s", text.c_str());
        return 0;
    }
    if (option == "--record") {
        std::istringstream declarations(list.declarations);
        for (std::string line; std::getline(declarations, line);) std::printf("module %s\n", line.c_str());
    }
    Driver driver(argv[1]);
    void* module = driver.load(text);
    unsigned passed = 0, failed = 0, known = 0;
    std::vector<std::vector<std::uint64_t>> sources;
    for (unsigned i = 0; i < forms.size(); i += step) {
        const Form& form = forms[i];
        if (option == "--show" && i + 1 != unsigned(std::atoi(argv[4]))) continue;
        std::vector<std::uint64_t> results = run(driver, module, form, i, sources);
        std::uint64_t hash = recordings::hash_bytes(results.data(), results.size() * 8);
        if (option == "--show") {
            for (unsigned t = 0; t < tuples; ++t) {
                for (const auto& source : sources) std::printf("%llx ", static_cast<unsigned long long>(source[t]));
                std::printf("-> %llx\n", static_cast<unsigned long long>(results[t]));
            }
        } else if (option == "--sample") {
            for (unsigned t = 0; t < tuples; t += tuples / unsigned(std::atoi(argv[4])))
                std::printf("%llx ", static_cast<unsigned long long>(results[(t * 37 + t / 64) % tuples]));
            std::printf("\n");
        } else if (option == "--record") {
            std::printf("%016llx %s ", static_cast<unsigned long long>(hash), form.result.c_str());
            for (unsigned s = 0; s < form.sources.size(); ++s) std::printf("%s%s", s ? "," : "", form.sources[s].c_str());
            std::printf(" %s\n", form.statement.c_str());
            std::fflush(stdout);
        } else if ((hash == form.hash) != form.known_difference) {
            (form.known_difference ? known : passed) += 1;
        } else {
            ++failed;
            std::printf("line %u: %s: %s\n", i + 1, form.statement.c_str(),
                        form.known_difference ? "agrees although it is marked as a known difference" : "differs from the recording");
        }
    }
    if (option.empty() || option == "--every") std::printf("%u forms agree, %u are known to differ, %u failed\n", passed, known, failed);
    return failed != 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA FORMS.txt [--every N | --record | --print | --show LINE | --sample COUNT]\n", argv[0]);
        return 2;
    }
    try {
        return compare(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
