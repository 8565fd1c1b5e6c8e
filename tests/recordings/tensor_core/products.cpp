// SPDX-License-Identifier: Apache-2.0
// Matrix products as an H100's tensor cores make them (golden.tsv, edge_cases.tsv) against runtime/tensor_core, with each kind of code
// that this CPU can run:
//   tensor_core_products FOLDER [--all] [--form TEXT] [--code NAME] [--every N] [--slice I/N]
// By default one block of each form, with --every of one form in N (an eighth of them by the portable code, which is slow); --all: all 64
// blocks of all forms, some hours of CPU time spread over the CPUs; --slice: of those the Ith of N parts. README.md has the columns.
#include "runtime/tensor_core/product_code.h"
#include "tests/recordings/tensor_core/golden.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace core = ptarmigan::runtime::tensor_core;
using core::Code;
using core::Format;
using core::MatrixProduct;
using core::Unit;
using tensor_inputs::Matrix;

constexpr const char* code_names[] = {"portable", "avx2", "avx512", "amx", "neon"};

struct Recording : tensor_inputs::Golden {
    MatrixProduct product;
};

Unit unit_of(const std::string& family, bool is_and) {
    if (family == "f64") return Unit::chain_f64;
    if (family == "int") return Unit::integer;
    if (family == "b1") return is_and ? Unit::bits_and : Unit::bits_xor;
    if (family == "wmma_tf32") return Unit::two_fused;
    if (family == "m8n8k4") return Unit::scalar_f16;
    if (family == "fp8_emulated") return Unit::fp8_by_f16;
    if (family == "wgmma_fp8") return Unit::fused_fp8;
    return Unit::fused;
}

std::vector<Recording> read_recordings(const std::string& path) {
    std::vector<Recording> recordings;
    for (tensor_inputs::Golden& golden : tensor_inputs::read_golden(path)) {
        Recording r{std::move(golden), {}};
        MatrixProduct& p = r.product;
        p = {r.form.a, r.form.b, r.form.c, r.form.d, unit_of(r.family, r.is_and != 0), 0, 0, 0};
        p.m = static_cast<std::uint16_t>(r.form.m);
        p.n = static_cast<std::uint16_t>(r.form.n);
        p.k = static_cast<std::uint16_t>(r.form.k * (r.form.a == Format::b1 ? 32 : 1));
        p.sparse = r.form.sparse;
        p.saturate = r.saturate != 0;
        p.negate_product = r.negate != 0;
        p.c_is_zero = r.zero_c != 0;
        p.rounding = static_cast<core::Rounding>(r.rounding);
        recordings.push_back(std::move(r));
    }
    return recordings;
}

/// The matrices of a product, as multiply() takes them.
struct Matrices {
    std::vector<std::uint64_t> a, b, c, d; // whole words, for their alignment
    std::vector<std::uint8_t> selected;

    explicit Matrices(const tensor_inputs::Form& form)
        : a(static_cast<std::size_t>(form.m * form.stored)), b(static_cast<std::size_t>(form.n * form.k)),
          c(static_cast<std::size_t>(form.m * form.n)), d(c.size()), selected(2 * a.size()) {}
    core::Operands operands() { return {a.data(), b.data(), c.data(), d.data(), selected.data()}; }
};

void put(Format format, std::vector<std::uint64_t>& matrix, int index, std::uint64_t bits) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(matrix.data());
    const auto at = static_cast<std::size_t>(index);
    switch (format) {
    case Format::f64: std::memcpy(bytes + at * 8, &bits, 8); break;
    case Format::f16:
    case Format::bf16: std::memcpy(bytes + at * 2, &bits, 2); break;
    case Format::e4m3:
    case Format::e5m2:
    case Format::s8:
    case Format::u8: bytes[at] = static_cast<std::uint8_t>(bits); break;
    case Format::s4:
    case Format::u4:
        bytes[at / 2] = static_cast<std::uint8_t>(at % 2 ? (bytes[at / 2] & 15) | bits << 4 : bits);
        break;
    default: std::memcpy(bytes + at * 4, &bits, 4);
    }
}

/// What the metadata `nibble` selects for stored element `place` of a row.
void select(Format format, int place, std::uint32_t nibble, std::uint8_t* selected) {
    const auto index = [&](int which) { return static_cast<int>(nibble >> (2 * which) & 3); };
    if (format == Format::tf32) { // halves of two words
        selected[2 * place] = static_cast<std::uint8_t>(4 * place + index(0));
        selected[2 * place + 1] = static_cast<std::uint8_t>(4 * place + index(1));
    } else if (format == Format::s4 || format == Format::u4) {
        selected[place] = static_cast<std::uint8_t>(place / 4 * 8 + index(place / 2 % 2) * 2 + place % 2);
    } else {
        selected[place] = static_cast<std::uint8_t>(place / 2 * 4 + index(place % 2));
    }
}

int stored_of_chunk(Format format) {
    return format == Format::tf32 ? 1 : format == Format::s4 || format == Format::u4 ? 4 : 2;
}

void fill(const tensor_inputs::Form& form, const tensor_inputs::Tile& tile, Matrices& matrices) {
    for (int i = 0; i < form.m * form.stored; ++i)
        put(form.a, matrices.a, i, element(form, tile, Matrix::a, i, i % form.stored, i / form.stored));
    for (int i = 0; i < form.n * form.k; ++i)
        put(form.b, matrices.b, i, element(form, tile, Matrix::b, i, i % form.k, i / form.k));
    for (int i = 0; i < form.m * form.n; ++i) put(form.c, matrices.c, i, element(form, tile, Matrix::c, i, 0, 0));
    if (!form.sparse) return;
    const int entries = form.a == Format::tf32 ? 2 : 1;
    for (int row = 0; row < form.m; ++row)
        for (int place = 0; place < form.stored; ++place)
            select(form.a, place,
                   metadata(form, tile, row * form.chunks() + place / stored_of_chunk(form.a)),
                   matrices.selected.data() + row * form.stored * entries);
}

std::uint64_t hash_of_block(const Recording& recording, int block, Code code) {
    const auto& form = recording.form;
    const core::Multiply multiply = core::multiplier(code, recording.product);
    Matrices matrices(form);
    std::uint64_t hash = 0;
    const int elements = form.m * form.n;
    for (int number = 0; number < recording.tiles; ++number) {
        const auto tile = tile_of(form, block, number);
        fill(form, tile, matrices);
        for (int pass = 0; pass < passes(form, tile.distribution); ++pass) {
            for (int i = 0; pass != 0 && i < elements; ++i) {
                const auto d = core::load_element(form.d, matrices.d.data(), static_cast<std::size_t>(i));
                put(form.c, matrices.c, i, next_c(form, tile.distribution, d));
            }
            multiply(recording.product, matrices.operands());
        }
        for (int i = 0; i < elements; ++i)
            hash += tensor_inputs::hash_of(static_cast<std::uint64_t>(number * elements + i),
                                           core::load_element(form.d, matrices.d.data(), static_cast<std::size_t>(i)));
    }
    return hash;
}

/// Single elements: form, C, D, a row of A, a column of B, metadata.
int check_edge_cases(const std::string& path, const std::vector<Recording>& recordings, Code code) {
    int wrong = 0;
    std::ifstream file(path);
    for (std::string text; std::getline(file, text);) {
        if (text.empty() || text[0] == '#') continue;
        std::istringstream line(text);
        std::string name, c, d, a, b, nibbles;
        for (auto* field : {&name, &c, &d, &a, &b, &nibbles}) std::getline(line, *field, '\t');
        const auto recording =
            std::find_if(recordings.begin(), recordings.end(), [&](const Recording& r) { return r.name == name; });
        MatrixProduct product{Format::f16, Format::f16, Format::f16, Format::f16, Unit::fused, 16, 8, 0};
        std::vector<std::uint64_t> row, column;
        const auto read = [](const std::string& words, std::vector<std::uint64_t>& to) {
            std::istringstream stream(words);
            for (std::uint64_t word; stream >> std::hex >> word;) to.push_back(word);
        };
        read(a, row);
        read(b, column);
        std::vector<std::uint64_t> metadata;
        read(nibbles, metadata);
        product.k = static_cast<std::uint16_t>(column.size());
        product.sparse = !metadata.empty();
        product.negate_product = recording != recordings.end()
                                     ? recording->product.negate_product
                                     : (name.find(".na") != name.npos) != (name.find(".nb") != name.npos);
        tensor_inputs::Form form{0,  Format::f16, Format::f16, Format::f16, Format::f16,
                                 16, 8, static_cast<int>(column.size()), static_cast<int>(row.size()),
                                 product.sparse, true};
        Matrices matrices(form);
        for (int i = 0; i < 16 * form.stored; ++i) put(Format::f16, matrices.a, i, row[static_cast<unsigned>(i % form.stored)]);
        for (int i = 0; i < 8 * form.k; ++i) put(Format::f16, matrices.b, i, column[static_cast<unsigned>(i % form.k)]);
        for (int i = 0; i < 16 * 8; ++i) put(Format::f16, matrices.c, i, std::stoull(c, nullptr, 16));
        for (int i = 0; i < 16 * form.stored && product.sparse; ++i)
            select(Format::f16, i % form.stored, static_cast<std::uint32_t>(metadata[static_cast<unsigned>(i % form.stored / 2)]),
                   matrices.selected.data() + i / form.stored * form.stored);
        core::multiplier(code, product)(product, matrices.operands());
        for (unsigned i = 0; i < 16 * 8; ++i) {
            const auto got = core::load_element(Format::f16, matrices.d.data(), i);
            if (got == std::stoull(d, nullptr, 16)) continue;
            std::printf("%s: %s: %llx, an H100 gives %s\n", code_names[static_cast<int>(code)], name.c_str(),
                        static_cast<unsigned long long>(got), d.c_str());
            ++wrong;
            break;
        }
    }
    return wrong;
}

} // namespace

int main(int argc, char** argv) {
    bool all = false;
    int every = 1, slice = 0, slices = 1;
    std::string folder, form, code_name;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--all")
            all = true;
        else if (word == "--form" && i + 1 < argc)
            form = argv[++i];
        else if (word == "--code" && i + 1 < argc)
            code_name = argv[++i];
        else if (word == "--every" && i + 1 < argc)
            every = std::max(1, std::atoi(argv[++i]));
        else if (word == "--slice" && i + 1 < argc && std::sscanf(argv[++i], "%d/%d", &slice, &slices) == 2)
            slices = std::max(1, slices);
        else
            folder = word;
    }
    const auto recordings = read_recordings(folder + "/golden.tsv");
    struct Work {
        const Recording* recording;
        int block;
        Code code;
    };
    std::vector<Work> work;
    int wrong_cases = 0;
    for (const Code code : core::codes) {
        if (!core::can_run(code) || (!code_name.empty() && code_name != code_names[static_cast<int>(code)])) continue;
        wrong_cases += check_edge_cases(folder + "/edge_cases.tsv", recordings, code);
        for (const auto& recording : recordings) {
            if (recording.name.find(form) == std::string::npos) continue;
            const int id = recording.form.id;
            const int sampled = code == Code::portable ? 8 * every : every;
            if (!all && form.empty() && tensor_inputs::mix(static_cast<std::uint64_t>(id)) / 64 % static_cast<unsigned>(sampled) != 0)
                continue;
            for (int block = 0; block < 64; ++block)
                if (all ? block % slices == slice % slices
                        : block == static_cast<int>(tensor_inputs::mix(static_cast<std::uint64_t>(id)) % 64))
                    work.push_back({&recording, block, code});
        }
    }
    if (recordings.empty() || work.empty()) {
        std::fprintf(stderr, "nothing to compare in '%s'\n", folder.c_str());
        return 2;
    }
    std::atomic<std::size_t> next = 0;
    std::atomic<int> differing = 0;
    const auto run = [&] {
        for (std::size_t i = next++; i < work.size(); i = next++) {
            const auto [recording, block, code] = work[i];
            const std::uint64_t got = hash_of_block(*recording, block, code), expected = recording->hash[block];
            if (got == expected) continue;
            ++differing;
            std::printf("%s: %s, block %d: %016llx, an H100 gives %016llx\n", code_names[static_cast<int>(code)],
                        recording->name.c_str(), block, static_cast<unsigned long long>(got),
                        static_cast<unsigned long long>(expected));
            std::fflush(stdout);
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(run);
    run();
    for (auto& thread : threads) thread.join();
    std::printf("%zu blocks compared, %d differ; %d single elements differ\n", work.size(), differing.load(), wrong_cases);
    return differing != 0 || wrong_cases != 0;
}
