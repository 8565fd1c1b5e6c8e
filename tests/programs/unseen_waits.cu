// SPDX-License-Identifier: Apache-2.0
// A loop that waits and that the translator takes for none that does (translator/analysis, Decisions): it needs
// PTARMIGAN_WAITS=all, and asks for that itself. "hang" as the first argument waits for what nobody writes, without.
#include "common/program.h"

#include <cstdlib>
#include <cstring>

KERNEL void two_names(const unsigned* seen, unsigned* written, unsigned* out);

#ifdef __CUDACC__
/// Each block waits for all later ones, by another parameter than the one that they write through.
__global__ void two_names(const unsigned* seen, unsigned* written, unsigned* out) {
    if (threadIdx.x != 0) return;
    for (int i = gridDim.x - 1; i > static_cast<int>(blockIdx.x);)
        if (*const_cast<const volatile unsigned*>(seen + i) != 0) --i;
    atomicExch(written + blockIdx.x, 1u);
    atomicAdd(out, 1u);
}
#endif

int main(int argc, char** argv) {
    const bool hang = argc > 1 && std::strcmp(argv[1], "hang") == 0;
    if (!hang) setenv("PTARMIGAN_WAITS", "all", 0);
    const test::Program program("unseen_waits", hang ? 1 : argc, argv);
    const unsigned blocks = 16, threads = 64;
    const test::Buffer<unsigned> flags(blocks), others(blocks), passed(1);
    LAUNCH(two_names, blocks, threads, 0, flags, hang ? others : flags, passed);
    const unsigned number = passed.download()[0];
    return program.finish(number == blocks, "blocks=%u", number);
}
