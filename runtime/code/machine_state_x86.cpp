// SPDX-License-Identifier: Apache-2.0
// Vector registers lie in the signal frame's XSAVE area, each group where CPUID leaf 13 says (Intel SDM volume 1,
// chapter 13).
#include "runtime/code/machine_state.h"

#include <cpuid.h>
#include <cstring>

namespace ptarmigan::runtime {

namespace {

/// Groups of the XSAVE area by the number of their bit.
enum Group : unsigned { sse = 1, upper_halves = 2, mask_registers = 5, upper_512 = 6, registers_16_to_31 = 7 };

// The legacy area, and the header behind it, are at fixed places; Linux writes its own words into the legacy area's
// end.
constexpr std::size_t xmm_offset = 160, software_offset = 464, header_offset = 512, header_size = 64;
constexpr std::uint32_t extended_magic = 0x46505853; // FP_XSTATE_MAGIC1

/// The XSAVE area of a signal frame.
class SavedVectors {
public:
    explicit SavedVectors(const std::uint8_t* area) : area_(area) {
        if (word(software_offset) != extended_magic) return;
        std::memcpy(&groups_, area + header_offset, sizeof groups_);
        size_ = word(software_offset + 16); // xstate_size
    }

    /// Copies `count` registers of `bytes` bytes each to places `stride` apart. A group that is in its initial state,
    /// or that the CPU lacks, is not there: zeros remain.
    void copy(Group group, unsigned count, std::size_t bytes, std::uint8_t* to, std::size_t stride) const {
        std::size_t at = xmm_offset;
        if (group != sse) {
            unsigned size = 0, offset = 0, flags = 0, unused = 0;
            if (!(groups_ >> group & 1) || !__get_cpuid_count(0xd, group, &size, &offset, &flags, &unused) ||
                offset < header_offset + header_size || offset + count * bytes > size_)
                return;
            at = offset;
        }
        for (unsigned i = 0; i < count; ++i) std::memcpy(to + i * stride, area_ + at + i * bytes, bytes);
    }

private:
    std::uint32_t word(std::size_t at) const {
        std::uint32_t value = 0;
        std::memcpy(&value, area_ + at, sizeof value);
        return value;
    }

    const std::uint8_t* area_;
    std::uint64_t groups_ = 0;
    std::size_t size_ = 0;
};

} // namespace

void save_registers(const ucontext_t& context, translator::MachineState& state) {
    std::memset(&state, 0, sizeof state);
    constexpr int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                               REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    for (unsigned i = 0; i < 16; ++i)
        state.general[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[order[i]]);
    const auto* area = reinterpret_cast<const std::uint8_t*>(context.uc_mcontext.fpregs);
    if (!area) return;
    const SavedVectors vectors(area);
    constexpr std::size_t stride = sizeof state.vectors[0];
    auto* first = reinterpret_cast<std::uint8_t*>(&state.vectors);
    vectors.copy(sse, 16, 16, first, stride);
    vectors.copy(upper_halves, 16, 16, first + 16, stride);
    vectors.copy(upper_512, 16, 32, first + 32, stride);
    vectors.copy(registers_16_to_31, 16, 64, first + 16 * stride, stride);
    vectors.copy(mask_registers, 8, 8, reinterpret_cast<std::uint8_t*>(state.masks), 8);
}

} // namespace ptarmigan::runtime
