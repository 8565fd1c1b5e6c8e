// SPDX-License-Identifier: Apache-2.0
// wgmma's lines of golden.tsv as PTX instructions: each block multiplies one tile's matrices, which the host has laid out as
// shared memory has them for the form's descriptors, or as the lanes' registers. On a GPU and on Ptarmigan:
//   tensor_core_warpgroup_instructions LIBCUDA FOLDER [--form TEXT] [--blocks N] [--every N] [--slice I/N]
// N blocks of 64 of each form (1 unless said otherwise, 64: all), of every Nth form only; --slice I/N: of those blocks the Ith part.
#include "tests/recordings/driver.h"
#include "tests/recordings/tensor_core/golden.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

namespace {

using tensor_inputs::bits_of;
using tensor_inputs::Format;
using tensor_inputs::Golden;
using tensor_inputs::Matrix;

constexpr int threads = 128, warps = 4, rows = 64, round = threads * 16;

/// A number for each element, its rows or columns (B) behind each other.
using Elements = std::vector<std::uint64_t>;

/// A matrix in shared memory: where each element lies, and the descriptor without its address.
class SharedTile {
public:
    SharedTile(int swizzle, bool across, unsigned bits, int lines)
        : swizzle_(swizzle), across_(across), bits_(bits), span_(swizzle == 1 ? 128 : swizzle == 2 ? 64 : 32),
          leading_(across && swizzle != 0 ? span_ * 32 : lines * 16), stride_(swizzle != 0 ? span_ * 8 : 128) {}

    std::uint64_t descriptor() const {
        return std::uint64_t(leading_ >> 4) << 16 | std::uint64_t(stride_ >> 4) << 32 | std::uint64_t(swizzle_) << 62;
    }
    /// Of row or column `line`.
    int place(int line, int k) const {
        int at = 0;
        if (across_ && swizzle_ != 0)
            at = line / (span_ / 2) * leading_ + k / 8 * stride_ + k % 8 * span_ + line % (span_ / 2) * 2;
        else if (across_)
            at = line / 8 * stride_ + k / 8 * leading_ + k % 8 * 16 + line % 8 * 2;
        else {
            const int byte = k * int(bits_) / 8;
            at = line / 8 * stride_ + (swizzle_ != 0 ? line % 8 * span_ + byte : byte / 16 * leading_ + line % 8 * 16 + byte % 16);
        }
        return swizzle_ != 0 ? at ^ (at >> 7 & (span_ / 16 - 1)) << 4 : at;
    }
    /// That the matrix takes, as whole rounds of copying.
    int bytes(int lines, int length) const {
        int end = 0;
        for (int line = 0; line < lines; ++line)
            for (int k = 0; k < length; ++k) end = std::max(end, place(line, k) + 1);
        return (end + round - 1) / round * round;
    }
    void put(const Elements& elements, int length, unsigned char* memory) const {
        for (int i = 0; i < int(elements.size()); ++i) std::memcpy(memory + place(i / length, i % length), &elements[std::size_t(i)], bits_ / 8);
    }

private:
    int swizzle_;
    bool across_;
    unsigned bits_;
    int span_, leading_, stride_;
};

class Instruction {
public:
    static constexpr int a_bytes = 10240, b_bytes = 32768; ///< of shared memory

    explicit Instruction(const Golden& recording)
        : recording_(recording), form_(recording.form), a_in_registers_(recording.has(".ra")),
          a_(swizzle(), recording.has(".ta"), bits_of(form_.a), rows), b_(swizzle(), recording.has(".tb"), bits_of(form_.b), form_.n) {}

    int d_registers() const { return rows * form_.n * int(bits_of(form_.d)) / (32 * threads); }
    void put_a(const Elements& elements, unsigned char* memory) const {
        if (!a_in_registers_) return a_.put(elements, form_.stored, memory);
        const int bits = int(bits_of(form_.a)), per = 32 / bits;
        for (int t = 0; t < threads; ++t)
            for (int r = 0; r < 4; ++r)
                for (int j = 0; j < per; ++j) {
                    const int row = 16 * (t / 32) + t % 32 / 4 + 8 * (r & 1), k = (r >> 1) * 4 * per + t % 4 * per + j;
                    std::memcpy(memory + (r * threads + t) * 4 + j * bits / 8, &elements[std::size_t(row * form_.stored + k)], std::size_t(bits / 8));
                }
    }
    void put_b(const Elements& elements, unsigned char* memory) const { b_.put(elements, form_.k, memory); }
    /// Element of C and D that register `r` of a thread has at `j`.
    int accumulator(int thread, int r, int j) const {
        const int i = bits_of(form_.d) == 16 ? 2 * r + j : r;
        return (16 * (thread / 32) + thread % 32 / 4 + 8 * (i >> 1 & 1)) * form_.n + 8 * (i >> 2) + 2 * (thread % 4) + (i & 1);
    }
    std::string text() const;

private:
    int swizzle() const {
        const std::size_t at = recording_.name.find(".swz");
        return at == std::string::npos ? 0 : recording_.name[at + 4] - '0';
    }

    const Golden& recording_;
    const tensor_inputs::Form& form_;
    bool a_in_registers_;
    SharedTile a_, b_;
};

std::string Instruction::text() const {
    std::istringstream words(recording_.name);
    std::string operation;
    for (std::string word; std::getline(words, word, '.');) {
        if (word == "da" || word == "ra") break;
        operation += (operation.empty() ? "" : ".") + word;
        if (word == "wgmma") operation += ".mma_async";
        if (word[0] == 'm') operation.insert(operation.rfind(".m"), ".sync.aligned");
    }
    const bool is_half = form_.a == Format::f16 || form_.a == Format::bf16;
    const bool is_float = bits_of(form_.d) == 16 || form_.d == Format::f32;
    const auto flag = [&](const char* word, const char* yes, const char* no) { return std::string(recording_.has(word) ? yes : no); };
    std::string d, loads, stores;
    for (int r = 0; r < d_registers(); ++r) {
        const std::string name = "%d" + std::to_string(r), place = std::to_string(r * threads * 4);
        d += (r ? ", " : "") + name;
        loads += "    ld.global.b32 " + name + ", [%lc+" + place + "];\n";
        stores += "    st.global.b32 [%ld+" + place + "], " + name + ";\n";
    }
    std::string product = "    " + operation + " {" + d + "}, " + (a_in_registers_ ? "{%a0, %a1, %a2, %a3}" : "%da") + ", %db";
    if (form_.sparse) product += std::string(", %e, ") + recording_.name.back();
    product += ", %p";
    if (is_float) product += ", " + flag(".na", "-1", "1") + ", " + flag(".nb", "-1", "1");
    if (is_half && !a_in_registers_) product += ", " + flag(".ta", "1", "0");
    if (is_half) product += ", " + flag(".tb", "1", "0");
    product += ";\n";
    std::string a;
    if (a_in_registers_)
        for (int r = 0; r < 4; ++r)
            a += "    ld.global.b32 %a" + std::to_string(r) + ", [%la+" + std::to_string(r * threads * 4) + "];\n";
    const auto copied = [](const char* label, const char* from, const std::string& to, int bytes) { // 16 bytes a thread
        const std::string l = label;
        return "    mov.u32 %i, %t4; \n" + l + ": add.u32 %t6, %i, %s" + to + "; cvt.u64.u32 %l9, %i; add.u64 %l9, %l9, " + from +
               ";\n    ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%l9]; st.shared.v4.b32 [%t6], {%v0, %v1, %v2, %v3};\n"
               "    add.u32 %i, %i, " + std::to_string(round) + "; setp.lt.u32 %q, %i, " + std::to_string(bytes) + "; @%q bra " + l + ";\n";
    };
    return ".version 9.0\n.target sm_90a\n.address_size 64\n"
           ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u64 pe)\n{\n"
           "    .shared .align 1024 .b8 sa[" + std::to_string(a_bytes) + "];\n    .shared .align 1024 .b8 sb[" + std::to_string(b_bytes) + "];\n"
           "    .reg .b32 %t<8>, %i, %v<4>, %d<128>, %a<4>, %e, %ssa, %ssb;\n    .reg .b64 %l<16>, %la, %lb, %lc, %ld, %le, %da, %db;\n    .reg .pred %p, %q;\n"
           "    mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; shl.b32 %t4, %t0, 4; mul.wide.u32 %l6, %t0, 4;\n"
           "    mov.u32 %ssa, sa; mov.u32 %ssb, sb;\n"
           "    ld.param.u64 %la, [pa]; mad.wide.u32 %la, %t1, " + std::to_string(a_bytes) + ", %la;\n"
           "    ld.param.u64 %lb, [pb]; mad.wide.u32 %lb, %t1, " + std::to_string(b_bytes) + ", %lb;\n"
           "    mul.wide.u32 %l7, %t1, " + std::to_string(d_registers() * threads * 4) + "; add.u64 %l7, %l7, %l6;\n"
           "    ld.param.u64 %lc, [pc]; add.u64 %lc, %lc, %l7; ld.param.u64 %ld, [pd]; add.u64 %ld, %ld, %l7;\n"
           "    ld.param.u64 %le, [pe]; mad.wide.u32 %le, %t1, 512, %le; add.u64 %le, %le, %l6; ld.global.b32 %e, [%le];\n" +
           (a_in_registers_ ? std::string("    add.u64 %la, %la, %l6;\n") : copied("copy_a", "%la", "sa", a_.bytes(rows, form_.stored))) + copied("copy_b", "%lb", "sb", b_.bytes(form_.n, form_.k)) + a + loads +
           "    fence.proxy.async.shared::cta; bar.sync 0;\n"
           "    shr.u32 %t2, %ssa, 4; cvt.u64.u32 %da, %t2; or.b64 %da, %da, " + std::to_string(a_.descriptor()) + ";\n"
           "    shr.u32 %t2, %ssb, 4; cvt.u64.u32 %db, %t2; or.b64 %db, %db, " + std::to_string(b_.descriptor()) + ";\n"
           "    setp.eq.u32 %p, 0, " + flag(".d0", "1", "0") + ";\n    wgmma.fence.sync.aligned;\n" + product +
           "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n" + stores + "    ret;\n}\n";
}

/// Operands of a block of golden.tsv in the device's memory.
class Block {
public:
    Block(recordings::Driver& driver, const Golden& recording)
        : driver_(driver), recording_(recording), form_(recording.form), instruction_(recording), tiles_(std::size_t(recording.tiles)),
          module_(driver.load(instruction_.text())) {
        const std::size_t sizes[] = {Instruction::a_bytes * tiles_, Instruction::b_bytes * tiles_, d_bytes() * tiles_, d_bytes() * tiles_, 512 * tiles_};
        for (int o = 0; o < 5; ++o) addresses_[o] = driver.allocate(sizes[o]);
    }
    ~Block() {
        for (const auto address : addresses_) driver_.call<recordings::Address>("cuMemFree_v2", address);
        driver_.unload(module_);
    }

    std::uint64_t hash(int block) {
        make_inputs(block);
        std::uint64_t result = 0;
        const int distribution = block % tensor_inputs::distributions;
        for (int left = tensor_inputs::passes(form_, distribution); left > 0; --left) {
            put_c();
            void* parameters[5];
            for (int i = 0; i < 5; ++i) parameters[i] = &addresses_[i];
            driver_.launch(module_, "k", unsigned(tiles_), threads, 1, parameters);
            get_d();
            for (std::size_t t = 0; t < tiles_ && left > 1; ++t)
                for (std::size_t i = 0; i < c_[t].size(); ++i) c_[t][i] = tensor_inputs::next_c(form_, distribution, d_[t][i]);
        }
        const std::size_t size = std::size_t(rows) * std::size_t(form_.n);
        for (std::size_t t = 0; t < tiles_; ++t)
            for (std::size_t i = 0; i < size; ++i) result += tensor_inputs::hash_of(t * size + i, d_[t][i]);
        return result;
    }

private:
    std::size_t d_bytes() const { return std::size_t(instruction_.d_registers()) * threads * 4; }
    void make_inputs(int block) {
        std::vector<unsigned char> a(Instruction::a_bytes * tiles_), b(Instruction::b_bytes * tiles_);
        std::vector<std::uint32_t> metadata(tiles_ * threads), nibbles(std::size_t(rows * form_.chunks()));
        c_.assign(tiles_, {});
        d_.assign(tiles_, Elements(std::size_t(rows) * std::size_t(form_.n)));
        Elements elements;
        for (std::size_t t = 0; t < tiles_; ++t) {
            const tensor_inputs::Tile tile = tensor_inputs::tile_of(form_, block, int(t));
            elements.clear();
            for (int i = 0; i < rows * form_.stored; ++i)
                elements.push_back(tensor_inputs::element(form_, tile, Matrix::a, i, i % form_.stored, i / form_.stored));
            instruction_.put_a(elements, &a[t * Instruction::a_bytes]);
            elements.clear();
            for (int i = 0; i < form_.n * form_.k; ++i)
                elements.push_back(tensor_inputs::element(form_, tile, Matrix::b, i, i % form_.k, i / form_.k));
            instruction_.put_b(elements, &b[t * Instruction::b_bytes]);
            for (int i = 0; i < rows * form_.n; ++i) c_[t].push_back(tensor_inputs::element(form_, tile, Matrix::c, i, 0, 0));
            if (!form_.sparse) continue;
            for (std::size_t i = 0; i < nibbles.size(); ++i) nibbles[i] = tensor_inputs::metadata(form_, tile, int(i));
            for (int w = 0; w < warps; ++w)
                tensor_inputs::metadata_words(recording_, &nibbles[std::size_t(16 * w * form_.chunks())], &metadata[t * threads + std::size_t(w) * 32]);
        }
        driver_.upload(addresses_[0], a.data(), a.size());
        driver_.upload(addresses_[1], b.data(), b.size());
        driver_.upload(addresses_[4], metadata.data(), metadata.size() * sizeof metadata[0]);
    }
    template <class Move> void for_each_accumulator(Move move) const {
        const int bytes = int(bits_of(form_.d)) / 8;
        for (std::size_t t = 0; t < tiles_; ++t)
            for (int r = 0; r < instruction_.d_registers(); ++r)
                for (int thread = 0; thread < threads; ++thread)
                    for (int j = 0; j < 4 / bytes; ++j)
                        move(t, std::size_t(instruction_.accumulator(thread, r, j)), t * d_bytes() + std::size_t((r * threads + thread) * 4 + j * bytes), std::size_t(bytes));
    }
    void put_c() {
        std::vector<unsigned char> memory(d_bytes() * tiles_);
        for_each_accumulator([&](std::size_t t, std::size_t i, std::size_t at, std::size_t bytes) { std::memcpy(&memory[at], &c_[t][i], bytes); });
        driver_.upload(addresses_[2], memory.data(), memory.size());
    }
    void get_d() {
        std::vector<unsigned char> memory(d_bytes() * tiles_);
        driver_.download(memory.data(), addresses_[3], memory.size());
        for_each_accumulator([&](std::size_t t, std::size_t i, std::size_t at, std::size_t bytes) {
            d_[t][i] = 0;
            std::memcpy(&d_[t][i], &memory[at], bytes);
        });
    }

    recordings::Driver& driver_;
    const Golden& recording_;
    const tensor_inputs::Form& form_;
    const Instruction instruction_;
    const std::size_t tiles_;
    void* module_;
    recordings::Address addresses_[5];
    std::vector<Elements> c_, d_;
};

} // namespace

int main(int argc, char** argv) {
    const char* library = nullptr;
    std::string folder, form;
    int blocks = 1, every = 1, slice = 0, slices = 1;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : "";
        if (word == "--form") form = value, ++i;
        else if (word == "--blocks") blocks = std::atoi(value), ++i;
        else if (word == "--every") every = std::atoi(value), ++i;
        else if (word == "--slice") slices = std::sscanf(value, "%d/%d", &slice, &slices) == 2 ? slices : 0, ++i;
        else if (!library) library = argv[i];
        else folder = word;
    }
    if (!library || folder.empty() || blocks < 1 || every < 1 || slices < 1) {
        std::fprintf(stderr, "usage: tensor_core_warpgroup_instructions LIBCUDA FOLDER [--form TEXT] [--blocks N] [--every N] [--slice I/N]\n");
        return 2;
    }
    recordings::Driver driver(library);
    int equal = 0, different = 0, forms = 0;
    for (const Golden& recording : tensor_inputs::read_golden(folder + "/golden.tsv")) {
        if (!recording.has("wgmma") || !recording.has(form.c_str()) || forms++ % every != 0) continue;
        Block operands(driver, recording);
        for (int i = slice; i < blocks; i += slices) {
            const int block = blocks == 64 ? i : int(tensor_inputs::mix(std::uint64_t(recording.form.id * 64 + i)) % 64);
            const std::uint64_t hash = operands.hash(block);
            if (hash == recording.hash[std::size_t(block)]) {
                ++equal;
                continue;
            }
            ++different;
            std::printf("%s block %d: %016llx, recorded %016llx\n", recording.name.c_str(), block,
                        static_cast<unsigned long long>(hash), static_cast<unsigned long long>(recording.hash[std::size_t(block)]));
        }
    }
    std::printf("%d blocks equal, %d different\n", equal, different);
    return different != 0 || equal == 0;
}
