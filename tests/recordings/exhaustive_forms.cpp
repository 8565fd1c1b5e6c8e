// SPDX-License-Identifier: Apache-2.0
// Runs the forms of a list on every input there is: those with one operand of 16 bits or less, with one of 32 bits, and with two of 16 bits or less.
// Compares checksums with those recorded on a GPU; the same program records and verifies:
//   exhaustive_forms LIBCUDA RECORDING.txt [FROM COUNT]         compares a sample: 2^20 inputs per form, all where there are 2^16
//   exhaustive_forms LIBCUDA RECORDING.txt --all [FROM COUNT]   compares all inputs: some seconds per form on a CPU
//   exhaustive_forms LIBCUDA FORMS.txt --record [FROM COUNT]    prints the recording for the forms of a list (forms.h) that are small enough
//   exhaustive_forms LIBCUDA RECORDING.txt --show LINE A        prints the results for inputs A * 2^16 to A * 2^16 + 65535
// An input is a 32-bit number: one operand, or two with the first in the upper half. A line of a recording is one of a list, its
// hash that of the sample, then a slash and a checksum for each of 64 blocks: a block has the inputs of one remainder of the
// upper half by 64, so that each has all magnitudes of the first operand. Checksums of blocks keep their lower 16 bits.
#include "tests/recordings/driver.h"
#include "tests/recordings/forms.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using recordings::Address;
using recordings::Driver;
using recordings::Form;

constexpr unsigned blocks = 64, forms_per_module = 32;
using Checksums = std::array<std::uint64_t, blocks>;

/// Upper halves of the sample: zero, one, limits, infinities, NaNs, subnormals, ties of halves, bfloats and floats.
constexpr std::uint32_t sample[] = {0x0000, 0x8000, 0x0001, 0x7fff, 0x3c00, 0xbc01, 0x7c00, 0xfe01,
                                    0x83ff, 0x3f80, 0xff80, 0x7f81, 0x4f00, 0x1234, 0xc2fe, 0x0080};

/// 16 or 32: the bits of an input; 0 if the form has more.
unsigned input_bits(const Form& form) {
    const auto bits = [&](unsigned i) { return std::max(16u, recordings::bits_of(form.sources[i])); };
    if (form.sources.size() == 1) return bits(0) <= 32 ? bits(0) : 0;
    return form.sources.size() == 2 && form.operand_count() == 2 && bits(0) == 16 && bits(1) == 16 ? 32 : 0;
}

/// k(uppers, sums): block b and thread t take inputs uppers[b] * 2^16 + t + 256 * (0 to 255) and add what they mix of input
/// and result to sums[uppers[b] % 64].
std::string kernel_text(const Form& form, unsigned id) {
    std::string body;
    if (form.sources.size() == 2) body += "shr.u64 %q3, %q2, 16;\n";
    for (unsigned i = 0; i < form.sources.size(); ++i)
        body += recordings::operand_load(form, i, i == 0 && form.sources.size() == 2 ? "%q3" : "%q2");
    return ".visible .entry k" + std::to_string(id) + "(.param .u64 uppers, .param .u64 sums)\n{\n" + recordings::form_registers +
           R"(.reg .b64 %s<8>; .reg .b32 %t<10>; .reg .pred %more;
mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x;
ld.param.u64 %s0, [uppers]; mul.wide.u32 %s1, %t0, 4; add.s64 %s0, %s0, %s1; ld.global.u32 %t2, [%s0];
shl.b32 %t3, %t2, 16; add.s32 %t3, %t3, %t1; mov.u32 %t4, 0; mov.u32 %t5, 0;
again:
cvt.u64.u32 %q2, %t3;
)" + body + recordings::operation(form) +
           R"(cvt.u32.u64 %t6, %q1; shr.u64 %q1, %q1, 32; cvt.u32.u64 %t7, %q1;
mul.lo.u32 %t7, %t7, 0x27d4eb2f; mul.lo.u32 %t8, %t3, 0x9e3779b1; xor.b32 %t6, %t6, %t7; xor.b32 %t6, %t6, %t8;
mul.lo.u32 %t6, %t6, 0x85ebca6b; shr.u32 %t7, %t6, 15; xor.b32 %t6, %t6, %t7;
mul.lo.u32 %t6, %t6, 0xc2b2ae35; shr.u32 %t7, %t6, 16; xor.b32 %t6, %t6, %t7; add.s32 %t5, %t5, %t6;
add.s32 %t3, %t3, 256; add.s32 %t4, %t4, 1; setp.lt.u32 %more, %t4, 256; @%more bra again;
ld.param.u64 %s2, [sums]; and.b32 %t2, %t2, 63; mul.wide.u32 %s3, %t2, 8; add.s64 %s2, %s2, %s3;
cvt.u64.u32 %s4, %t5; red.global.add.u64 [%s2], %s4;
ret;
}
)";
}

/// The results themselves, for --show: k(uppers, results) stores one per input of uppers[0].
std::string showing_text(const Form& form) {
    std::string text = kernel_text(form, 0);
    const std::size_t at = text.find("cvt.u32.u64 %t6, %q1;");
    text.insert(at, "ld.param.u64 %s5, [sums]; and.b32 %t9, %t3, 65535; mul.wide.u32 %s6, %t9, 8; add.s64 %s5, %s5, %s6; st.global.u64 [%s5], %q1;\n");
    const std::size_t red = text.find("red.global");
    return text.erase(red, text.find('\n', red) - red);
}

class Runner {
public:
    explicit Runner(const char* library)
        : driver(library), uppers_(driver.allocate(65536 * 4)), sums_(driver.allocate(65536 * 8)) {}

    Checksums checksums(void* module, unsigned id, const std::vector<std::uint32_t>& uppers) {
        Checksums sums{};
        driver.upload(uppers_, uppers.data(), uppers.size() * 4);
        driver.upload(sums_, sums.data(), sizeof sums);
        void* arguments[] = {&uppers_, &sums_};
        driver.launch(module, "k" + std::to_string(id), unsigned(uppers.size()), 256, 1, arguments);
        driver.download(sums.data(), sums_, sizeof sums);
        return sums;
    }
    std::vector<std::uint64_t> results(const Form& form, std::uint32_t upper) {
        std::vector<std::uint64_t> words(65536);
        driver.upload(uppers_, &upper, 4);
        void* arguments[] = {&uppers_, &sums_};
        driver.launch(driver.load(header + showing_text(form)), "k0", 1, 256, 1, arguments);
        driver.download(words.data(), sums_, words.size() * 8);
        return words;
    }
    void* load(const std::string& kernels) { return driver.load(header + kernels); }

    Driver driver;

private:
    static inline const std::string header = ".version 9.0\n.target sm_90\n.address_size 64\n";
    Address uppers_, sums_;
};

std::vector<std::uint32_t> sample_of(const Form& form) {
    if (input_bits(form) == 16) return {0};
    return {std::begin(sample), std::end(sample)};
}
std::vector<std::uint32_t> everything() {
    std::vector<std::uint32_t> uppers(65536);
    std::iota(uppers.begin(), uppers.end(), 0u);
    return uppers;
}

std::string hexadecimal(std::uint64_t value, int digits) {
    char text[20];
    std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(value));
    return text;
}

/// The blocks' checksums as a recording has them; empty for forms of 2^16 inputs.
std::string all_blocks(Runner& runner, void* module, unsigned id, const Form& form) {
    std::string text;
    if (input_bits(form) == 32)
        for (const std::uint64_t sum : runner.checksums(module, id, everything())) text += hexadecimal(sum & 0xffff, 4);
    return text;
}
std::uint64_t sample_hash(Runner& runner, void* module, unsigned id, const Form& form) {
    const Checksums sums = runner.checksums(module, id, sample_of(form));
    return recordings::hash_bytes(sums.data(), sizeof sums);
}

std::string line_of(const Form& form) {
    std::string text = form.result + ' ';
    for (std::size_t i = 0; i < form.sources.size(); ++i) text += (i != 0 ? "," : "") + form.sources[i];
    return text + ' ' + form.statement;
}

/// Takes a recording's checksums from the end of the statement.
std::string cut_blocks(Form& form) {
    const std::size_t slash = form.statement.rfind(" / ");
    if (slash == std::string::npos) return "";
    const std::string text = form.statement.substr(slash + 3);
    form.statement.erase(slash);
    return text;
}

/// The lines that count is about: forms of a list that are small enough, or a recording's.
std::vector<Form> chosen(const char* path, int argc, char** argv, int first) {
    std::vector<Form> forms = recordings::read_forms(path).forms;
    std::erase_if(forms, [](const Form& form) { return input_bits(form) == 0; });
    const std::size_t from = std::min(forms.size(), argc > first ? std::size_t(std::atol(argv[first])) : 0);
    const std::size_t count = std::min(forms.size() - from, argc > first + 1 ? std::size_t(std::atol(argv[first + 1])) : forms.size());
    return {forms.begin() + long(from), forms.begin() + long(from + count)};
}

int run(int argc, char** argv) {
    const std::string option = argc > 3 && argv[3][0] == '-' ? argv[3] : "";
    std::vector<Form> forms = chosen(argv[2], option == "--show" ? 0 : argc, argv, option.empty() ? 3 : 4);
    std::vector<std::string> recorded;
    for (Form& form : forms) recorded.push_back(cut_blocks(form));
    Runner runner(argv[1]);
    if (option == "--show") {
        const std::uint32_t upper = std::uint32_t(std::strtoul(argv[5], nullptr, 16));
        const std::vector<std::uint64_t> results = runner.results(forms.at(std::size_t(std::atol(argv[4])) - 1), upper);
        for (std::size_t i = 0; i < results.size(); ++i)
            std::printf("%04x%04zx -> %llx\n", upper, i, static_cast<unsigned long long>(results[i]));
        return 0;
    }
    unsigned failed = 0, known = 0;
    void* module = nullptr;
    for (std::size_t i = 0; i < forms.size(); ++i) {
        const Form& form = forms[i];
        if (i % forms_per_module == 0) {
            if (module) runner.driver.unload(module);
            std::string text;
            for (std::size_t k = i; k < std::min(i + forms_per_module, forms.size()); ++k) text += kernel_text(forms[k], unsigned(k));
            module = runner.load(text);
        }
        const std::uint64_t hash = sample_hash(runner, module, unsigned(i), form);
        std::string actual = option.empty() ? recorded[i] : all_blocks(runner, module, unsigned(i), form);
        if (option == "--record") {
            std::printf("%s %s%s\n", hexadecimal(hash, 16).c_str(), line_of(form).c_str(), actual.empty() ? "" : (" / " + actual).c_str());
            std::fflush(stdout);
            continue;
        }
        known += form.known_difference;
        const bool equal = hash == form.hash && actual == recorded[i];
        if (equal != form.known_difference) continue;
        ++failed;
        std::string where = hash == form.hash ? "" : " sample";
        for (std::size_t at = 0; at < actual.size(); at += 4)
            if (actual.compare(at, 4, recorded[i], at, 4) != 0) where += ' ' + std::to_string(at / 4);
        std::printf("%s: %s%s\n", line_of(form).c_str(), form.known_difference ? "agrees although it is marked as a known difference" : "differs in", where.c_str());
    }
    if (option != "--record")
        std::printf("%zu forms agree, %u are known to differ, %u failed\n", forms.size() - failed - known, known, failed);
    return failed != 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA FORMS.txt [--record | --all | --show LINE UPPER] [FROM COUNT]\n", argv[0]);
        return 2;
    }
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
