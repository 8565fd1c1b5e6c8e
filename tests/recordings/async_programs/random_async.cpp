// SPDX-License-Identifier: Apache-2.0
// Compares the kernels of generator.cpp with what an H200 gave, or records it, four hashes per seed: numbers of threads, shared memory at
// the end, memory of CTAs, memory of the grid:
//   random_async LIBCUDA --record COUNT [FROM] > part; random_async LIBCUDA RECORDING [FROM COUNT]; random_async - --print SEED
#include "tests/recordings/async_programs/generator.h"
#include "tests/recordings/driver.h"
#include "tests/recordings/random.h"
#include "tests/recordings/seeded_recorder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using async_programs::Program;
using async_programs::TensorShape;
using recordings::Address;

constexpr unsigned programs_per_module = 8;

struct alignas(64) TensorMap {
    std::uint64_t words[16];
};

class Runner {
public:
    explicit Runner(const char* library)
        : driver_(library), words_(async_programs::input_bytes / 4), input_(driver_.allocate(async_programs::input_bytes)),
          results_(driver_.allocate(result_bytes)) {
        recordings::Random random(1);
        for (std::uint32_t& word : words_) word = static_cast<std::uint32_t>(random.bits());
        driver_.upload(input_, words_.data(), async_programs::input_bytes);
    }

    template <class Visit> void run(unsigned from, unsigned end, bool, Visit visit) {
        for (unsigned first = from; first < end; first += programs_per_module) {
            std::vector<Program> programs;
            std::string text = async_programs::program_head;
            for (unsigned seed = first; seed < std::min(first + programs_per_module, end); ++seed) {
                programs.push_back(async_programs::generate(seed));
                text += programs.back().text;
            }
            void* module = driver_.load(text);
            for (unsigned i = 0; i < programs.size(); ++i) visit(first + i, hashes(module, programs[i], first + i));
            driver_.unload(module);
        }
    }

private:
    // One allocation: what each CTA stores, slots of the grid, what shared memory held at the end, a word per thread.
    static constexpr std::size_t slots_at = std::size_t{async_programs::scratch_bytes} * async_programs::most_ctas,
                                 dump_at = slots_at + async_programs::slot_count * async_programs::buffer_bytes,
                                 out_at = dump_at + std::size_t{async_programs::dump_bytes} * async_programs::most_ctas,
                                 result_bytes = out_at + 4 * async_programs::most_threads * async_programs::most_ctas;

    TensorMap encode(const TensorShape& shape, Address address) {
        TensorMap map;
        constexpr std::uint32_t strides[2] = {1, 1};
        driver_.call<void*, int, unsigned, Address, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int, int, int>(
            "cuTensorMapEncodeTiled", &map, 2 /* u32 */, 2, address, shape.size.data(), &shape.pitch, shape.box.data(), strides, 0, int(shape.swizzle), 0, 0);
        return map;
    }

    std::string hashes(void* module, const Program& program, unsigned seed) {
        std::vector<std::uint8_t> bytes(result_bytes);
        std::memcpy(bytes.data() + slots_at, words_.data() + seed % 97, async_programs::slot_count * async_programs::buffer_bytes);
        driver_.upload(results_, bytes.data(), result_bytes);
        TensorMap load = encode(program.load, input_), store = encode(program.store, results_);
        Address slots = results_ + slots_at, dump = results_ + dump_at, out = results_ + out_at;
        void* parameters[] = {&input_, &results_, &slots, &dump, &out, &load, &store};
        driver_.launch(module, "k" + std::to_string(seed), program.grid, program.block, 1, parameters);
        driver_.download(bytes.data(), results_, result_bytes);
        std::string text;
        for (const auto& [from, end] : {std::pair{out_at, result_bytes}, std::pair{dump_at, out_at}, std::pair{std::size_t{0}, slots_at}, std::pair{slots_at, dump_at}}) {
            char hash[16];
            std::snprintf(hash, sizeof hash, "%08x ", static_cast<unsigned>(recordings::hash_bytes(bytes.data() + from, end - from) >> 32));
            text += hash;
        }
        text.pop_back();
        return text;
    }

    recordings::Driver driver_;
    std::vector<std::uint32_t> words_;
    Address input_, results_;
};

} // namespace

int main(int argc, char** argv) {
    return recordings::seeded_recorder<Runner>(argc, argv, [](unsigned seed) { return async_programs::program_head + async_programs::generate(seed).text; });
}
